// The table of cases. Only the rows in view exist, so 10,000 cases scroll like ten. Keyboard: the
// arrows, Page Up and Down, Home and End move, Enter opens, / goes to the filter.
//
// Own code, because the tables that packages ship bring their own filters and editors (Tabulator
// 0.4 MB, AG Grid 1.1 MB); what is needed here is fewer lines than their set-up.

const rowHeight = 26;
const baseColumns = [
  {key: 'verdict', width: '150px', cell: verdictBadge, sort: verdictOf},
  {key: 'case', width: 'minmax(220px, 1fr)', cell: index => element('a', {href: linkWith({case: data.cases.id[index]}), tabindex: '-1', title: data.cases.name[index]}, data.cases.name[index] || 'defaults'), sort: index => data.cases.name[index]},
  {key: 'ranks', width: '68px', number: true, cell: index => data.cases.ranks[index], sort: index => data.cases.ranks[index]},
  {key: 'seconds', width: '86px', number: true, cell: index => digits(data.cases.seconds[index], 2), sort: index => data.cases.seconds[index]},
  {key: 'speedup', title: 'speed-up', width: '94px', number: true, cell: index => digits(speedup(index), 2), sort: speedup},
  {key: 'memory_bytes', title: 'memory', width: '90px', number: true, cell: index => bytesText(figure(index, 'memory_bytes')), sort: index => figure(index, 'memory_bytes')},
  {key: 'checks', width: '176px', cell: checksCell, sort: index => 1000 * checkCounts(index).f + checkCounts(index).u}
];
const moreColumns = [
  {key: 'observed', width: '140px', cell: observedOf, sort: observedOf},
  {key: 'id', width: '150px', cell: index => data.cases.id[index], sort: index => data.cases.id[index]},
  {key: 'reason', width: 'minmax(200px, 1fr)', cell: index => data.reasons[data.cases.reason[index]], sort: index => data.reasons[data.cases.reason[index]]},
  {key: 'rule', width: '56px', number: true, cell: index => data.cases.rule[index], sort: index => data.cases.rule[index]},
  {key: 'isolation', width: '84px', cell: index => data.isolations[data.cases.isolation[index]], sort: index => data.isolations[data.cases.isolation[index]]},
  ...['eager_ms', 'graph_ms', 'capture_ms', 'graphs', 'graph_nodes'].map(key => ({key, title: key.replaceAll('_', ' '), width: '90px', number: true,
    cell: index => key.endsWith('ms') ? digits(figure(index, key), 2) : spelledFigure(figure(index, key)), sort: index => figure(index, key)}))
];
function spelledFigure(value) { return value === null ? '' : String(value); }
function checksCell(index) {
  const counts = checkCounts(index);
  const text = counts.p + ' pass' + (counts.f ? ', ' + counts.f + ' fail' : '') + (counts.u ? ', ' + counts.u + ' unseen' : '');
  return counts.f || counts.u ? element('strong', null, text) : text;
}
function axisColumn(axis) {
  return {key: axis.name, width: Math.min(190, 40 + 8 * Math.max(axis.name.length, ...axis.values.map(value => spelled(value).length))) + 'px',
    cell: index => spelled(axisValue(index, axis.name)), sort: index => axisValue(index, axis.name)};
}
function allColumns() {
  const figures = moreColumns.filter(column => !/_ms$|^graph/.test(column.key) || data.cases[column.key]);
  const base = baseColumns.filter(column => column.key === 'speedup' ? data.cases.graph_ms && data.cases.eager_ms
    : column.key === 'memory_bytes' ? data.cases.memory_bytes : true);
  return {base, more: [...figures, ...data.axes.map(axisColumn)]};
}

/** Sorted without changing `rows`; absent values come last in both directions. */
function sortedRows(rows, sort) {
  const down = sort.startsWith('-'), key = sort.replace(/^-/, '');
  const {base, more} = allColumns(), column = [...base, ...more].find(one => one.key === key);
  if (!column) return rows;
  const value = new Map(rows.map(index => [index, column.sort(index)]));
  const missing = one => one === null || one === undefined || one === '';
  return [...rows].sort((a, b) => {
    const left = value.get(a), right = value.get(b);
    if (missing(left) || missing(right)) return missing(left) - missing(right) || a - b;
    const order = typeof left === 'number' && typeof right === 'number' ? left - right : spelled(left).localeCompare(spelled(right), 'en', {numeric: true});
    return (down ? -order : order) || a - b;
  });
}

const severity = Object.keys(kinds);
let shownRows = [];  // the rows of the table as they are shown; previous and next case follow them

function casesSection() {
  const failure = element('p', {class: 'mistake', role: 'alert', id: 'filter-mistake'});
  const counted = element('span', {id: 'counted', role: 'status'});
  const input = element('input', {id: 'filter', type: 'search', spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'filter-mistake',
    placeholder: 'tp >= 2 and impl in {local, manual}   or a word of the name'});
  const quick = element('span', {class: 'quick', role: 'group', 'aria-label': 'quick filters'});
  const grid = element('div', {class: 'grid', role: 'grid', tabindex: '0', 'aria-label': 'cases', id: 'cases-grid'});
  const head = element('div', {class: 'grid-head', role: 'rowgroup'});
  const body = element('div', {class: 'grid-body', role: 'rowgroup'});
  grid.append(head, body);
  const chooser = element('details', {class: 'chooser'});
  let columns = [], active = 0;

  function chosenColumns() {
    const {base, more} = allColumns();
    if (state.columns) {
      const wanted = state.columns.split(',');
      return [...base, ...more].filter(column => wanted.includes(column.key));
    }
    const narrow = innerWidth < 640;
    return narrow ? base.filter(column => ['verdict', 'case', 'seconds'].includes(column.key)) : base;
  }
  function fillChooser() {
    const {base, more} = allColumns(), keys = new Set(columns.map(column => column.key));
    const box = column => element('label', null, element('input', {type: 'checkbox', checked: keys.has(column.key), onchange: event => {
      if (event.target.checked) keys.add(column.key); else keys.delete(column.key);
      change({columns: [...base, ...more].map(one => one.key).filter(key => keys.has(key)).join(',')});
      update();
    }}), ' ' + (column.title || column.key));
    chooser.replaceChildren(element('summary', null, 'columns'), element('div', {class: 'boxes'}, [...base, ...more].map(box)));
  }
  function fillHead() {
    const sort = state.sort || '';
    const row = element('div', {role: 'row', 'aria-rowindex': '1'}, columns.map(column => {
      const up = sort === column.key, down = sort === '-' + column.key;
      return element('div', {role: 'columnheader', class: column.number ? 'number' : undefined, 'aria-sort': up ? 'ascending' : down ? 'descending' : 'none'},
        element('button', {type: 'button', onclick: () => { change({sort: up ? '-' + column.key : down ? undefined : column.key}); update(); }},
          (column.title || column.key) + (up ? ' \u2191' : down ? ' \u2193' : '')));
    }));
    head.replaceChildren(row);
  }
  function rowNode(position) {
    const index = shownRows[position];
    return element('div', {role: 'row', id: 'row-' + position, 'aria-rowindex': position + 2, class: position === active ? 'active' : undefined,
      css: {top: position * rowHeight + 'px'}},
    columns.map(column => element('div', {role: 'gridcell', class: column.number ? 'number' : undefined}, column.cell(index))));
  }
  function render(everything) {
    const top = Math.max(0, Math.floor((grid.scrollTop - rowHeight) / rowHeight) - 6);
    const shown = everything ? shownRows.length : Math.ceil(grid.clientHeight / rowHeight) + 14;
    const nodes = [];
    for (let position = everything ? 0 : top; position < Math.min(shownRows.length, (everything ? 0 : top) + shown); ++position)
      nodes.push(rowNode(position));
    body.replaceChildren(...nodes);
    if (shownRows.length) grid.setAttribute('aria-activedescendant', 'row-' + active);
    else grid.removeAttribute('aria-activedescendant');
  }
  function move(to) {
    active = Math.max(0, Math.min(shownRows.length - 1, to));
    const top = active * rowHeight, view = grid.clientHeight - rowHeight;
    if (top < grid.scrollTop) grid.scrollTop = top;
    if (top + rowHeight > grid.scrollTop + view) grid.scrollTop = top + rowHeight - view;
    render();
  }
  function update() {
    input.value = state.filter || '';
    columns = chosenColumns();
    let rows = data.all;
    failure.textContent = '';
    try {
      const wanted = compileFilter(state.filter || '');
      rows = rows.filter(wanted);
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      failure.textContent = error.message;
    }
    // Without a wish failures come first.
    shownRows = state.sort ? sortedRows(rows, state.sort)
      : [...rows].sort((a, b) => severity.indexOf(kindOf(a)) - severity.indexOf(kindOf(b)) || a - b);
    active = Math.max(0, Math.min(active, shownRows.length - 1));
    counted.textContent = shownRows.length === data.count ? plural(data.count, 'case') : shownRows.length + ' of ' + plural(data.count, 'case');
    const template = columns.map(column => column.width).join(' ');
    grid.style.setProperty('--columns', template);
    grid.style.setProperty('--width', columns.reduce((sum, column) => sum + (parseInt(column.width.replace('minmax(', ''), 10) || 200), 0) + 'px');
    grid.setAttribute('aria-rowcount', shownRows.length + 1);
    grid.setAttribute('aria-colcount', columns.length);
    body.style.height = shownRows.length * rowHeight + 'px';
    for (const button of quick.children) button.setAttribute('aria-pressed', button.dataset.filter === (state.filter || ''));
    fillHead();
    render();
  }
  function fillQuick() {
    const seen = [...new Set(data.all.map(verdictOf))];
    const buttons = [['', 'all'], ...seen.slice(0, 8).map(verdict => ['verdict == ' + literal(verdict), verdict])];
    quick.replaceChildren(...buttons.map(([filter, text]) => element('button', {type: 'button', 'data-filter': filter, onclick: () => { change({filter}); update(); }}, text)));
  }
  let waiting = 0;
  input.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { change({filter: input.value}); const at = input.selectionStart; update(); input.setSelectionRange(at, at); }, 120);
  });
  grid.addEventListener('scroll', () => render());
  grid.addEventListener('keydown', event => {
    const page = Math.max(1, Math.floor(grid.clientHeight / rowHeight) - 2);
    const steps = {ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: shownRows.length - 1};
    if (event.target.closest('.grid-head')) return;
    if (event.key in steps) {
      move(steps[event.key]);
      event.preventDefault();
    } else if (event.key === 'Enter' && shownRows.length && event.target === grid) {
      location.hash = linkWith({case: data.cases.id[shownRows[active]]});
    }
  });
  body.addEventListener('click', event => {
    const row = event.target.closest('[role=row]');
    if (!row || event.target.closest('a')) return;
    active = Number(row.id.slice(4));
    render();
  });
  addEventListener('beforeprint', () => render(shownRows.length <= 2000));
  addEventListener('afterprint', () => render());

  fillQuick();
  const section = element('section', {id: 'cases'}, element('h2', null, 'Cases ', counted),
    element('div', {class: 'tools'}, element('label', {class: 'filter'}, element('span', null, 'filter '), input), quick, chooser),
    failure, grid,
    element('p', {class: 'small quiet'}, 'The filter is the expression language of matrix files; it also knows verdict, observed, ranks, seconds, speedup, memory_bytes, failing_checks, name, reason. ' +
      'Keys: / filter, arrows move, Enter opens, Esc comes back. The address of the page holds filter, order and columns.'));
  section.update = () => { update(); fillChooser(); };
  return section;
}
