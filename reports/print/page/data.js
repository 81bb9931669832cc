// Data: unpacks what the program put into the page, and answers questions about cases. A case is
// its index everywhere; `data.cases` has a column for each of its properties.

let data = null;

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

const chunks = new Map();
/** What only the page of a case shows. */
async function detailOf(index) {
  const number = Math.floor(index / data.chunk_cases);
  if (!chunks.has(number)) {
    const text = document.querySelectorAll('.chunk')[number].textContent;
    chunks.set(number, unpacked(text).then(JSON.parse));
  }
  return (await chunks.get(number))[index % data.chunk_cases];
}

async function loadData() {
  data = JSON.parse(await unpacked(document.getElementById('data').textContent));
  data.count = data.cases.id.length;
  data.axisOf = new Map(data.axes.map(axis => [axis.name, axis]));
  data.fixedAxisOf = new Map(data.fixed_axes);
  data.indexOf = new Map(data.cases.id.map((id, index) => [id, index]));
  data.all = Array.from({length: data.count}, (unused, index) => index);
}

function verdictOf(index) { return data.verdicts[data.cases.verdict[index]]; }
function observedOf(index) { return data.verdicts[data.cases.observed[index]]; }
function axisValue(index, name) {
  const axis = data.axisOf.get(name);
  if (axis) return axis.values[axis.of[index]];
  return data.fixedAxisOf.has(name) ? data.fixedAxisOf.get(name) : null;
}
function figure(index, name) {
  const column = data.cases[name];
  return column === undefined ? null : column[index];
}
function speedup(index) {
  const eager = figure(index, 'eager_ms'), graph = figure(index, 'graph_ms');
  return eager === null || !graph ? null : eager / graph;
}
/** How many checks of a case had each result. */
function checkCounts(index) {
  const counts = {p: 0, f: 0, u: 0, n: 0};
  for (const letter of data.check_results[data.cases.checks[index]])
    if (letter in counts) counts[letter] += 1;
  return counts;
}

// Every verdict belongs to a kind, which has a colour and, for those who see no colours, a sign.
const kinds = {
  product: {sign: '\u2715', label: 'failed'},
  coverage: {sign: '\u25cb', label: 'not shown'},
  infra: {sign: '\u25b2', label: 'infrastructure'},
  interrupted: {sign: '\u2016', label: 'interrupted'},
  expected: {sign: '\u25c6', label: 'expected to fail'},
  ok: {sign: '\u2713', label: 'acceptable'},
  skipped: {sign: '\u2013', label: 'skipped'}
};
function kindOf(index) { return data.kinds[data.cases.kind[index]]; }
/** Whether the case gave a result, good or bad. */
function ran(index) { return !/^(skipped|not_run|infra)/.test(verdictOf(index)); }

// ---- how values are written

function spelled(value) {
  if (value === null || value === undefined) return 'absent';
  if (Array.isArray(value)) return value.length ? value.join(', ') : 'none';
  return String(value);
}
/** The value as a literal of the expression language. */
function literal(value) {
  if (value === null) return 'absent';
  if (Array.isArray(value)) return '{' + value.map(literal).join(', ') + '}';
  if (typeof value !== 'string') return String(value);
  const call = /^[A-Za-z_]\w*\([^"'\\]*\)$/.test(value);
  return call || /^[A-Za-z_]\w*$/.test(value) ? value : JSON.stringify(value);
}
function digits(value, count) {
  return value === null || value === undefined || !Number.isFinite(value) ? '' : value.toFixed(count);
}
function secondsText(seconds) {
  if (seconds < 60) return seconds.toFixed(seconds < 10 ? 2 : 1) + ' s';
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60, rest = String(whole % 60).padStart(2, '0');
  return hours ? hours + ':' + String(minutes).padStart(2, '0') + ':' + rest + ' h' : minutes + ':' + rest + ' min';
}
function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return '';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; Math.abs(bytes) >= 1024 && unit < units.length - 1; ++unit) bytes /= 1024;
  return (unit && Math.abs(bytes) < 100 ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[unit];
}
function plural(count, one, many) { return count + ' ' + (count === 1 ? one : many || one + 's'); }
