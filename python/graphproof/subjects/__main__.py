"""`python -m graphproof.subjects --json`: what of the subjects is installed here, as JSON."""

import json
import sys

from graphproof.subjects import NAMES, available


def main(arguments: list) -> int:
    if arguments != ["--json"]:
        print("usage: python -m graphproof.subjects --json", file=sys.stderr)
        return 2
    print(json.dumps({name: {key: value for key, value in available(name).items()
                             if key != "packages"} for name in NAMES}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
