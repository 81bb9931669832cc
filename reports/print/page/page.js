'use strict';
// Everything below is shown through textContent: what a rank printed can never become markup.
const run = JSON.parse(document.getElementById('data').textContent);
const kinds = {0: 'ok', 1: 'product', 3: 'infrastructure', 4: 'coverage', 5: 'interrupted'};
const byId = new Map(run.cases.map(one => [one.id, one]));

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}
function kindOf(one) {
  return one.verdict.startsWith('skipped') ? 'skipped' : kinds[one.exit_code] || 'product';
}
function badge(one) { return element('span', one.verdict, 'verdict ' + kindOf(one)); }
function spelled(value) { return typeof value === 'string' ? value : JSON.stringify(value); }
function number(value, digits) { return value === null || value === undefined ? '-' : value.toFixed(digits); }
function fill(table, head, rows) {
  table.replaceChildren();
  if (head) {
    const line = table.createTHead().insertRow();
    for (const name of head) line.append(element('th', name));
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const cell of row) {
      const place = line.insertCell();
      if (cell instanceof Node) place.append(cell);
      else {
        place.textContent = typeof cell === 'number' ? String(cell) : cell;
        if (typeof cell === 'number') place.className = 'number';
      }
    }
  }
}
function linkTo(one) {
  const link = element('a', one.name);
  link.href = '#' + one.id;
  return link;
}

// ---- the run
document.title = 'graphproof ' + run.profile + ' on ' + run.device;
document.getElementById('title').textContent = document.title;
document.getElementById('outcome').textContent =
  'Run ' + run.run_name + ', ' + run.wall_seconds.toFixed(1) + ' s, exit code ' + run.exit_code + ': ' + run.exit_meaning +
  '. ' + run.coverage.planned + ' planned = ' + run.coverage.ran + ' ran + ' + run.coverage.rejected + ' rejected + ' +
  run.coverage.skipped + ' skipped + ' + run.coverage.not_run + ' not run; ' + run.coverage.unexercised + ' of ' +
  run.coverage.required_checks + ' required checks unexercised.' + (run.finished ? '' : ' The run did not finish.');
for (const [verdict, count] of Object.entries(run.counts)) {
  const example = run.cases.find(one => one.verdict === verdict);
  const item = element('li');
  item.append(badge(example), ' ' + count);
  document.getElementById('counts').append(item);
}

// ---- the map: two axes against each other
const varied = [...new Set(run.cases.flatMap(one => Object.keys(one.axes)))]
  .filter(axis => new Set(run.cases.map(one => spelled(one.axes[axis] ?? null))).size > 1).sort();
function drawMap() {
  const rows = document.getElementById('map-rows').value, columns = document.getElementById('map-columns').value;
  const valuesOf = axis => [...new Set(run.cases.map(one => spelled(one.axes[axis] ?? null)))].sort();
  const cells = new Map();
  for (const one of run.cases) {
    if (kindOf(one) === 'skipped' || one.verdict === 'not_run') continue;
    const key = spelled(one.axes[rows] ?? null) + '\n' + spelled(one.axes[columns] ?? null);
    const cell = cells.get(key) || {all: 0, ok: 0};
    cell.all += 1;
    cell.ok += kindOf(one) === 'ok' ? 1 : 0;
    cells.set(key, cell);
  }
  const table = document.getElementById('map');
  fill(table, [rows + ' \\ ' + columns, ...valuesOf(columns)], valuesOf(rows).map(row => [row, ...valuesOf(columns).map(column => {
    const cell = cells.get(row + '\n' + column);
    return cell ? cell.ok + ' / ' + cell.all : '';
  })]));
  valuesOf(rows).forEach((row, y) => valuesOf(columns).forEach((column, x) => {
    const cell = cells.get(row + '\n' + column);
    if (cell) table.tBodies[0].rows[y].cells[x + 1].style.background =
      cell.ok === cell.all ? '#dafbe1' : 'rgba(180, 35, 24, ' + (0.15 + 0.5 * (1 - cell.ok / cell.all)) + ')';
  }));
}
for (const id of ['map-rows', 'map-columns']) {
  const select = document.getElementById(id);
  for (const axis of varied) select.append(element('option', axis));
  select.addEventListener('change', drawMap);
}
if (varied.length > 1) {
  document.getElementById('map-rows').value = varied.includes('impl') ? 'impl' : varied[0];
  document.getElementById('map-columns').value = varied.find(axis => axis !== document.getElementById('map-rows').value);
  drawMap();
} else {
  document.getElementById('map-rows').closest('section').hidden = true;
}

// ---- the cases
fill(document.getElementById('cases'), ['verdict', 'case', 'ranks', 'seconds', 'reason'],
     run.cases.map(one => [badge(one), linkTo(one), one.ranks, Number(one.seconds.toFixed(2)), one.reason]));
const table = new DataTable('#cases', {pageLength: 50, order: [], stateSave: false});
// A filter on each of the axes that vary, and on the verdict; together they must all hold.
const wanted = new Map();
$.fn.dataTable.ext.search.push((settings, data, index) => {
  if (settings.nTable.id !== 'cases') return true;
  const one = run.cases[index];
  return [...wanted].every(([axis, value]) => value === '' ||
    (axis === 'verdict' ? one.verdict : spelled(one.axes[axis] ?? null)) === value);
});
for (const axis of ['verdict', ...varied]) {
  const label = element('label', axis + ' '), select = element('select');
  select.id = 'filter-' + axis;
  const values = new Set(run.cases.map(one => axis === 'verdict' ? one.verdict : spelled(one.axes[axis] ?? null)));
  for (const value of ['', ...[...values].sort()]) select.append(element('option', value));
  select.addEventListener('change', () => { wanted.set(axis, select.value); table.draw(); });
  label.append(select);
  document.getElementById('filters').append(label);
}

// ---- kill matrix, benefit, stack
if (run.faults.length)
  fill(document.getElementById('faults'), ['fault', 'detector', 'status', 'failing checks', 'clean twin'],
       run.faults.map(one => [one.fault, one.detector, one.status, one.killed_by.join(', '), one.clean_twin]));
else document.getElementById('faults-section').hidden = true;
if (run.benefit.length)
  fill(document.getElementById('benefit'),
       ['case', 'eager ms', 'graph ms', 'eager / graph', 'launch ms', 'GPU busy in eager', 'capture ms', 'graphs', 'extra MiB', 'steps to break even', 'benefit'],
       run.benefit.map(one => [linkTo(byId.get(one.case)), number(one.eager_ms, 2), number(one.graph_ms, 2),
         number(one.eager_ms / one.graph_ms, 1), number(one.launch_ms, 2),
         one.busy_share === null ? '-' : (100 * one.busy_share).toFixed(0) + ' %', number(one.capture_ms, 1), one.graphs,
         number(one.extra_bytes / 1048576, 1), number(one.break_even_steps, 1), one.meaning]));
else document.getElementById('benefit-section').hidden = true;
fill(document.getElementById('stack'), null,
     Object.entries(run.stack).map(([part, version]) => [part, spelled(version)]));

// ---- one case
const charts = [];
function chart(title, unit, curves) {
  if (!Object.keys(curves).length) return;
  const figure = element('figure'), canvas = element('canvas');
  figure.append(element('figcaption', title), canvas);
  document.getElementById('case-charts').append(figure);
  const colors = ['#0969da', '#bc4c00', '#1a7f37', '#8250df', '#bf3989', '#6e7781', '#116329', '#9a6700'];
  charts.push(new Chart(canvas, {
    type: 'line',
    data: {datasets: Object.entries(curves).map(([name, curve], index) => ({
      label: name, borderColor: colors[index % colors.length], backgroundColor: colors[index % colors.length],
      data: curve.steps.map((step, at) => ({x: step, y: curve.values[at]})), pointRadius: 2, borderWidth: 1.5}))},
    options: {animation: false, parsing: false, scales: {x: {type: 'linear', title: {display: true, text: 'step'}, ticks: {precision: 0}},
      y: {title: {display: true, text: unit}}}}
  }));
}
function failingPart(one) {
  const part = element('div', undefined, 'failing'), list = element('dl');
  part.append(element('strong', [one.check, one.rank === null ? '' : 'rank ' + one.rank].filter(Boolean).join(', ')));
  for (const name of ['what', 'got', 'want', 'why', 'next'])
    if (one[name]) list.append(element('dt', name), element('dd', one[name]));
  part.append(list);
  return part;
}
function symptomPart(one) {
  const part = element('div'), list = element('ol');
  part.append(element('h3', 'Likely causes of ' + one.symptom), list);
  for (const cause of one.likely) {
    const item = element('li', cause.cause), parts = element('dl');
    parts.append(element('dt', 'fix'), element('dd', cause.fix), element('dt', 'confirm'), element('dd', cause.confirm));
    item.append(parts);
    list.append(item);
  }
  return part;
}
function showCase(one) {
  for (const old of charts.splice(0)) old.destroy();
  document.getElementById('case-charts').replaceChildren();
  const name = document.getElementById('case-name');
  name.replaceChildren(badge(one), ' ' + one.name);
  document.getElementById('case-reason').textContent =
    one.reason + ' (case ' + one.id + ', rule ' + one.rule + ', attempt ' + one.attempt + ', ' + one.isolation + ', ' + one.ranks +
    ' ranks, ' + one.seconds.toFixed(2) + ' s' + (one.observed !== one.verdict ? ', observed ' + one.observed : '') + '; evidence in ' +
    (one.artefacts || 'no folder') + ')';
  document.getElementById('case-failing').replaceChildren(...one.failing.map(failingPart));
  document.getElementById('case-divergence').textContent = one.divergence ? 'First divergent tensor: ' + one.divergence : '';
  document.getElementById('case-symptoms').replaceChildren(...one.symptoms.map(symptomPart));
  document.getElementById('case-repro').textContent = one.repro;
  const series = one.series || {loss: {}, difference: {}, memory: {}};
  chart('loss by arm', 'loss', series.loss);
  chart('largest difference between arms', 'absolute', series.difference);
  chart('memory by arm', 'bytes', series.memory);
  fill(document.getElementById('case-checks'), null, Object.entries(one.checks));
  fill(document.getElementById('case-axes'), null, Object.entries(one.axes).map(([axis, value]) => [axis, spelled(value)]));
  fill(document.getElementById('case-figures'), null, Object.entries(one.figures).map(([figure, value]) => [figure, spelled(value)]));
}
function route() {
  const one = byId.get(location.hash.slice(1));
  document.getElementById('case').hidden = !one;
  document.getElementById('run').hidden = Boolean(one);
  if (one) showCase(one);
  document.body.dataset.shown = one ? one.id : 'run';
}
addEventListener('hashchange', route);
route();
