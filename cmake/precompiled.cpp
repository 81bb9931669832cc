// The templates that precompiled.h declares as compiled elsewhere.
#include "cmake/precompiled.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class nlohmann::detail::iter_impl<const nlohmann::json>;
template class nlohmann::detail::iter_impl<const nlohmann::ordered_json>;
template class std::vector<nlohmann::json>;
template class std::vector<nlohmann::ordered_json>;
template class std::vector<std::string>;
