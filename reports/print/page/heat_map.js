// The heat map: two axes against each other, coloured by how many cases of a cell failed in the
// run, expected or not (a planted fault that was caught is no failure). The default pair is the one
// that tells failures from passes best; if nothing failed, the one that shows the most.

function badness(index) { return kindOf(index) === 'ok' ? 0 : 1; }
function mappable() { return data.axes.filter(axis => axis.values.length <= 40); }

/** How much knowing the keys of cases says about which of them failed, in bits. */
function information(keys, rows) {
  const cells = new Map();
  for (const index of rows) {
    const cell = cells.get(keys(index)) || [0, 0];
    cell[badness(index)] += 1;
    cells.set(keys(index), cell);
  }
  const entropy = (a, b) => [a, b].reduce((sum, one) => one ? sum - one * Math.log2(one / (a + b)) : sum, 0);
  let left = 0, all = [0, 0];
  for (const [good, bad] of cells.values()) {
    left += entropy(good, bad);
    all = [all[0] + good, all[1] + bad];
  }
  // Each cell costs a little, so that an axis of many values does not win by chance.
  return entropy(...all) - left - 0.6 * cells.size;
}
/** How evenly an axis of a readable number of values divides the cases, in bits. */
function spread(axis, keys, rows) {
  if (axis.values.length > 12) return 0;
  const counts = new Map();
  for (const index of rows) counts.set(keys(index), (counts.get(keys(index)) || 0) + 1);
  let bits = axis.name === 'impl' ? 1 : 0;  // which every reader asks first
  for (const count of counts.values()) bits -= count / rows.length * Math.log2(count / rows.length);
  return bits;
}
function defaultPair() {
  const rows = data.all.filter(ran), axes = mappable();
  if (axes.length < 2) return null;
  const failed = rows.some(index => badness(index) === 1);
  const best = (keysOf, candidates) => candidates.map(axis => [failed ? information(keysOf(axis), rows) : spread(axis, keysOf(axis), rows), axis])
    .reduce((most, one) => one[0] > most[0] ? one : most);
  const [, first] = best(axis => index => axis.of[index], axes);
  const [, second] = best(axis => index => first.of[index] * 1000 + axis.of[index], axes.filter(axis => axis !== first));
  return [first.name, second.name];
}

function heatMapSection() {
  const axes = mappable(), pair = defaultPair();
  if (!pair) return null;
  const place = element('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'heat map of two axes'});
  const select = (id, key, label) => {
    const node = element('select', {id, onchange: () => { change({[key]: node.value}); update(); }}, axes.map(axis => element('option', {value: axis.name}, axis.name)));
    return [element('label', null, label + ' ', node), node];
  };
  const [rowsLabel, rowsSelect] = select('map-rows', 'rows', 'rows'), [acrossLabel, acrossSelect] = select('map-across', 'across', 'columns');
  const order = axis => axis.values.map((value, number) => [value, number]).sort(([a], [b]) =>
    typeof a === 'number' && typeof b === 'number' ? a - b : spelled(a).localeCompare(spelled(b), 'en', {numeric: true}));
  function update() {
    const down = data.axisOf.get(state.rows) || data.axisOf.get(pair[0]);
    const across = data.axisOf.get(state.across) || data.axisOf.get(pair[1]);
    rowsSelect.value = down.name;
    acrossSelect.value = across.name;
    const cells = new Map();
    for (const index of data.all) {
      if (!ran(index)) continue;
      const key = down.of[index] + ' ' + across.of[index];
      if (!cells.has(key)) cells.set(key, {all: 0, bad: 0, kind: 'ok'});
      const cell = cells.get(key);
      cell.all += 1;
      cell.bad += badness(index);
      if (severity.indexOf(kindOf(index)) < severity.indexOf(cell.kind)) cell.kind = kindOf(index);
    }
    const cellNode = ([row, y], [column, x]) => {
      const cell = cells.get(y + ' ' + x);
      if (!cell) return element('td', {class: 'empty'});
      const share = cell.bad / cell.all, kind = cell.bad && cell.kind === 'ok' ? 'expected' : cell.kind;
      const filter = down.name + ' == ' + literal(row) + ' and ' + across.name + ' == ' + literal(column);
      return element('td', {class: 'kind-' + kind, css: {'--share': cell.bad ? 0.18 + 0.24 * share : 0.16}},
        element('a', {href: linkWith({filter, part: 'cases'}), title: filter,
          'aria-label': spelled(row) + ', ' + spelled(column) + ': ' + cell.bad + ' of ' + cell.all + ' failed'},
        cell.bad ? element('strong', null, kinds[kind].sign + ' ' + cell.bad + '/' + cell.all) : String(cell.all)));
    };
    const columns = order(across);
    place.replaceChildren(element('table', {class: 'heat'},
      element('thead', null, element('tr', null, element('td', {class: 'corner'}, down.name + ' \u2193  ' + across.name + ' \u2192'), columns.map(([value]) => element('th', {scope: 'col'}, spelled(value))))),
      element('tbody', null, order(down).map(row => element('tr', null, element('th', {scope: 'row'}, spelled(row[0])), columns.map(column => cellNode(row, column)))))));
  }
  const section = element('section', {id: 'map'}, element('h2', null, 'Heat map'),
    element('div', {class: 'tools'}, rowsLabel, acrossLabel, element('span', {class: 'quiet'}, 'A cell: cases that ran, or failures of all that ran. Choose one to see its cases.')), place);
  section.update = update;
  return section;
}
