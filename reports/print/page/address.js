// The address: the part behind # holds everything that can be chosen, so every state is a link.
//   case=ID  filter=EXPRESSION  sort=COLUMN or -COLUMN  columns=A,B  rows=AXIS  across=AXIS  part=ID

let state = {};

function parsedAddress() {
  const text = location.hash.slice(1);
  if (/^[0-9a-f]{16}$/.test(text)) return {case: text};  // as pages of former versions had it
  return Object.fromEntries(new URLSearchParams(text));
}
/** The link to the present state with these changes; undefined takes a key away. */
function linkWith(changes) {
  const next = {...state, part: undefined, ...changes};
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(next))
    if (value !== undefined && value !== '') parameters.set(key, value);
  return '#' + parameters.toString();
}
/** Changes the state in place, without a new entry in the browser's history. */
function change(changes) {
  history.replaceState(null, '', linkWith(changes));
  state = parsedAddress();
}
