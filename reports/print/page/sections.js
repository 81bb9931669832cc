// The other parts of the page of a run: hazards, planted faults, benefit, schedule, memory and
// loss, the stack.

function hazardsSection() {
  const hazards = data.hazards;
  if (!hazards || !hazards.cells.length) return null;
  const worked = cell => cell.observed.startsWith('pass');
  const distinct = key => [...new Set(hazards.cells.map(cell => cell[key]))];
  const groups = data.groups.filter(group => group.cases.some(index => hazards.cells.some(cell => cell.case === data.cases.id[index])));
  const columns = distinct('allocator').flatMap(allocator => distinct('placement').flatMap(placement =>
    distinct('nccl_graph_register').map(register => ({allocator, placement, register}))));
  const rows = [false, true].flatMap(captured => distinct('collective').map(collective => ({captured, collective})))
    .filter(row => hazards.cells.some(cell => cell.captured === row.captured && cell.collective === row.collective));
  const at = new Map(hazards.cells.map(cell => [[cell.captured, cell.collective, cell.allocator, cell.placement, cell.nccl_graph_register].join(), cell]));
  const span = (key, size) => {
    const heads = [];
    for (let i = 0; i < columns.length; i += size) heads.push(element('th', {scope: 'colgroup', colspan: size}, columns[i][key]));
    return heads;
  };
  const registers = distinct('nccl_graph_register').length, placements = distinct('placement').length;
  const cellNode = (row, column) => {
    const cell = at.get([row.captured, row.collective, column.allocator, column.placement, column.register].join());
    if (!cell) return element('td', {class: 'empty'});
    const index = data.indexOf.get(cell.case), kind = index === undefined ? 'skipped' : worked(cell) && kindOf(index) === 'ok' ? 'ok' : kindOf(index);
    const word = worked(cell) ? 'works' : cell.observed;
    return element('td', {class: 'kind-' + kind, css: {'--share': worked(cell) ? 0.16 : 0.42}},
      element('a', {href: linkWith({case: cell.case}), title: word, 'aria-label': (row.captured ? 'captured ' : 'eager ') + row.collective + ', ' + column.allocator + ', ' + column.placement + ', register ' + column.register + ': ' + word},
        worked(cell) ? kinds.ok.sign : kinds[kind].sign + ' ' + (cell.observed.split('.')[1] || cell.observed)));
  };
  const scores = new Map();
  for (const cell of hazards.cells)
    for (const one of cell.predictions) {
      const key = [one.dialect, one.rule, one.covers].join('\n');
      const score = scores.get(key) || {rule: one, agrees: 0, judged: 0, needless: 0, misses: 0};
      scores.set(key, score);
      if (one.agrees === null) continue;
      score.judged += 1;
      score.agrees += one.agrees;
      score.needless += !one.agrees && one.refuses;
      score.misses += !one.agrees && !one.refuses;
    }
  const whys = [...new Set(hazards.cells.filter(cell => !worked(cell)).map(cell => cell.hazard))].map(id => hazards.titles[id]).filter(Boolean);
  return element('section', {id: 'hazards'},
    element('h2', null, 'Hazards'),
    groups.length ? groups.map(groupCard) : element('p', null, sign('ok'), ' No combination that was tried hangs, crashes or corrupts results on this stack.'),
    whys.length > 0 && element('details', null, element('summary', null, 'what happens inside'), whys.map(one => element('p', null, one.why + '. ', element('span', {class: 'quiet'}, one.source + '.')))),
    element('h3', null, 'Every combination'),
    element('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'map of hazards'},
      element('table', {class: 'heat'},
        element('thead', null,
          element('tr', null, element('th', {scope: 'row', colspan: 2}, 'allocator'), span('allocator', placements * registers)),
          element('tr', null, element('th', {scope: 'row', colspan: 2}, 'placement'), span('placement', registers)),
          element('tr', null, element('th', {scope: 'row', colspan: 2}, 'NCCL_GRAPH_REGISTER'), columns.map(column => element('th', {scope: 'col'}, column.register)))),
        element('tbody', null, rows.map(row => element('tr', null, element('th', {scope: 'row'}, row.captured ? 'captured' : 'eager'), element('th', {scope: 'row'}, row.collective),
          columns.map(column => cellNode(row, column))))))),
    scores.size > 0 && [element('h3', null, 'What upstream\u2019s rules say about them'),
      table(['dialect', 'rule', 'covers', 'agrees', 'refuses what works', 'allows what fails'], [...scores.values()].map(score =>
        [score.rule.dialect, score.rule.rule, score.rule.covers, score.judged ? score.agrees + ' of ' + score.judged : 'no result', score.needless, score.misses]), {label: 'rules of upstream'})]);
}

function faultsSection() {
  if (!data.faults.length) return null;
  const detector = check => check.split('.')[0];
  const detectors = [...new Set(data.faults.flatMap(fault => [fault.detector, ...fault.killed_by.map(detector)]))].sort();
  const statusKind = {killed: 'ok', harmless: 'ok', killed_elsewhere: 'coverage', survived: 'product', unexercised: 'coverage'};
  const counts = new Map();
  for (const fault of data.faults) counts.set(fault.status, (counts.get(fault.status) || 0) + 1);
  const cell = (fault, name) => {
    const own = fault.detector === name, hit = fault.killed_by.some(check => detector(check) === name);
    const text = own && hit ? '\u25cf' : own ? '\u25cb' : hit ? '\u00b7' : '';
    return element('td', {class: own ? hit ? 'own hit' : 'own miss' : hit ? 'hit' : undefined,
      title: text ? fault.fault + ' ' + (hit ? 'fails ' : 'does not fail ') + name : undefined}, text);
  };
  return element('section', {id: 'faults'}, element('h2', null, 'Kill matrix'),
    element('p', null, [...counts].map(([status, count]) => count + ' ' + status.replace('_', ' ')).join(', ') + '. ',
      element('span', {class: 'quiet'}, '\u25cf the fault fails a check of its detector, \u25cb it does not, \u00b7 it also fails a check of another detector.')),
    element('div', {class: 'wide tall', tabindex: '0', role: 'region', 'aria-label': 'kill matrix'},
      element('table', {class: 'matrix'},
        element('thead', null, element('tr', null, element('th', {scope: 'col'}, 'planted fault'), element('th', {scope: 'col'}, 'status'), element('th', {scope: 'col'}, 'twin'),
          detectors.map(name => element('th', {scope: 'col', class: 'upright'}, element('span', null, name))))),
        element('tbody', null, data.faults.map(fault => element('tr', null,
          element('th', {scope: 'row', title: fault.title}, caseLink(fault.case, fault.fault), element('span', {class: 'quiet'}, ' ' + fault.title)),
          element('td', null, sign(statusKind[fault.status] || 'product'), ' ' + fault.status.replace('_', ' ')),
          element('td', null, fault.clean_twin.startsWith('pass') ? sign('ok') : element('strong', null, fault.clean_twin)),
          detectors.map(name => cell(fault, name))))))));
}

function benefitSection() {
  const rows = data.benefit.map(one => {
    const index = data.indexOf.get(one.case), gain = data.gains[index];
    return {...one, index, ratio: one.eager_ms / one.graph_ms, low: gain ? gain[0] : null, high: gain ? gain[1] : null};
  }).sort((a, b) => b.ratio - a.ratio);
  if (!rows.length) return null;
  const sure = rows.filter(row => row.low !== null && row.low > 1).length, slower = rows.filter(row => row.high !== null && row.high < 1).length;
  const unsure = rows.filter(row => row.low !== null && row.low <= 1 && row.high >= 1).length, unknown = rows.length - sure - slower - unsure;
  const top = [...rows.slice(0, 10)];
  return element('section', {id: 'benefit'}, element('h2', null, 'Benefit'),
    element('p', null, 'Graphs are faster in ' + sure + ' of ' + plural(rows.length, 'case') + ', slower in ' + slower + ', and neither is shown in ' + (unsure + unknown) + '. ',
      element('span', {class: 'quiet'}, 'Faster or slower counts only where the interval (about 95 %, of the medians of the last steps) leaves 1 out.')),
    plot('time of an eager step by that of a graph step', 'speed-up of ' + plural(rows.length, 'case') + ', from ' + shortNumber(rows.at(-1).ratio) + ' to ' + shortNumber(rows[0].ratio), () => ({
      grid: {left: 56, right: 16, top: 28, bottom: 56},
      tooltip: {trigger: 'item', formatter: hit => {
        const row = rows[hit.dataIndex];
        return row.name + '\n' + shortNumber(row.eager_ms) + ' ms eager, ' + shortNumber(row.graph_ms) + ' ms with graphs: ' + row.ratio.toFixed(2) + ' times' + (row.low === null ? '' : ' (' + row.low.toFixed(2) + ' to ' + row.high.toFixed(2) + ')');
      }},
      xAxis: {type: 'category', data: rows.map(row => row.name), axisLabel: {show: false}, axisTick: {show: false}, name: 'cases, by speed-up', nameLocation: 'middle', nameGap: 10},
      yAxis: {type: 'log', name: 'times', min: value => Math.min(0.8, value.min), axisLabel: {formatter: shortNumber}},
      dataZoom: [...wheelZoom, {type: 'slider', height: 14, bottom: 8, labelFormatter: '', borderColor: ink('line')}],
      series: [
        {type: 'custom', silent: true, encode: {x: 0, y: [1, 2]}, data: rows.map((row, number) => row.low === null ? [number, null, null] : [number, row.low, row.high]),
          renderItem(unused, api) {
            if (!Number.isFinite(api.value(1))) return null;
            const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
            return {type: 'line', shape: {x1: low[0], y1: low[1], x2: high[0], y2: high[1]}, style: {stroke: ink('quiet'), lineWidth: 1.4}};
          }},
        {type: 'scatter', symbolSize: 6, data: rows.map(row => ({value: row.ratio, itemStyle: {color: row.low === null ? ink('quiet') : row.low > 1 ? ink('ok') : row.high < 1 ? ink('product') : ink('coverage')},
          symbol: row.low === null ? 'circle' : row.low > 1 ? 'triangle' : row.high < 1 ? 'rect' : 'emptyCircle'})),
        markLine: {silent: true, symbol: 'none', lineStyle: {color: ink('text'), type: 'solid', width: 1}, label: {show: false}, data: [{yAxis: 1}]}}]
    }), {height: 280, wide: true, onclick: hit => { if (rows[hit.dataIndex]) location.hash = linkWith({case: rows[hit.dataIndex].case}); }}),
    element('details', null, element('summary', null, 'figures of the ' + plural(top.length, 'case') + ' with the largest gain'),
      table(['case', 'eager ms', 'graph ms', 'times', 'interval', 'GPU busy in eager', 'capture ms', 'graphs', 'extra memory', 'pays after steps'],
        top.map(row => [caseLink(row.index), digits(row.eager_ms, 2), digits(row.graph_ms, 2), row.ratio.toFixed(2), row.low === null ? '' : row.low.toFixed(2) + ' to ' + row.high.toFixed(2),
          row.busy_share === null ? '' : (100 * row.busy_share).toFixed(0) + ' %', digits(row.capture_ms, 1), row.graphs, bytesText(row.extra_bytes), digits(row.break_even_steps, 0)]), {label: 'largest gains'}),
      element('p', null, element('a', {href: linkWith({sort: '-speedup', filter: 'speedup > 0', part: 'cases'})}, 'all of them in the table of cases'))),
    data.benefit_by_axis.length ? element('details', {class: 'by-axis'}, element('summary', null, 'by axis and value'),
      element('p', null, 'Times are medians over the cases with each value, which may differ in other axes as well. The axes with the largest differences come first.'),
      table(['axis', 'value', 'cases', 'times', 'from', 'to', 'extra memory'],
        data.benefit_by_axis.map(row => [row.axis, typeof row.value === 'string' ? row.value : JSON.stringify(row.value), row.cases, row.speed_up.toFixed(2), row.least.toFixed(2), row.largest.toFixed(2),
          bytesText(row.extra_bytes)]), {label: 'gains by axis'})) : null);
}

function scheduleSection() {
  const spans = data.spans.filter(([, begin, end]) => end > begin).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  if (!spans.length) return null;
  const origin = spans[0][1], free = new Array(Math.max(1, data.run.slots)).fill(-Infinity), bars = [];
  let busy = 0, last = 0;
  for (const [index, begin, end] of spans) {
    const lanes = [];
    // Clocks of ranks have whole milliseconds.
    for (let lane = 0; lanes.length < data.cases.ranks[index] && lane < free.length; ++lane)
      if (free[lane] <= begin + 2) lanes.push(lane);
    while (lanes.length < Math.min(data.cases.ranks[index], 64)) lanes.push(free.push(-Infinity) - 1);
    for (const lane of lanes) {
      free[lane] = end;
      busy += end - begin;
      bars.push({lane, begin: (begin - origin) / 1000, end: (end - origin) / 1000, index, name: data.cases.name[index], color: () => ink(kindOf(index) + '-bar'),
        text: data.cases.name[index] + '\n' + verdictOf(index) + ', ' + secondsText((end - begin) / 1000) + ' on ' + plural(data.cases.ranks[index], 'rank')});
    }
    last = Math.max(last, end - origin);
  }
  const share = busy / (last * free.length);
  return element('section', {id: 'schedule'}, element('h2', null, 'Schedule'),
    element('p', null, plural(spans.length, 'attempt') + ' in ' + secondsText(last / 1000) + '; slots were busy with cases for ' + (100 * share).toFixed(0) + ' % of it. ',
      element('span', {class: 'quiet'}, 'The last attempt of each case, by the clock of its ranks. The numbers of slots are given here: a case takes the first free ones.')),
    timelinePlot('slots', 'which case ran on which slot when', free.map((unused, lane) => 'slot ' + lane), bars, 's',
      {onclick: hit => { location.hash = linkWith({case: data.cases.id[bars[hit.dataIndex].index]}); }}));
}

function memorySection() {
  const memory = data.all.filter(index => figure(index, 'memory_bytes') !== null);
  const place = element('div', {class: 'plots'});
  if (memory.length)
    place.append(plot('memory that graphs hold beyond eager', 'memory of ' + plural(memory.length, 'case'), () => ({
      tooltip: {formatter: hit => data.cases.name[memory[hit.dataIndex]] + '\n' + bytesText(hit.value[1])},
      xAxis: {type: 'value', name: 'graph nodes', nameLocation: 'middle', nameGap: 22, axisLabel: {formatter: shortNumber}},
      yAxis: {type: 'value', axisLabel: {formatter: bytesText}},
      dataZoom: wheelZoom,
      series: [{type: 'scatter', symbolSize: 6, itemStyle: {opacity: 0.75}, data: memory.map(index => [figure(index, 'graph_nodes') || 0, figure(index, 'memory_bytes')])}]
    }), {onclick: hit => { location.hash = linkWith({case: data.cases.id[memory[hit.dataIndex]]}); }}));
  const curves = element('div', {class: 'curves-of-cases'});
  place.append(curves);
  const button = element('button', {type: 'button', id: 'draw-loss', onclick: async () => {
    const rows = shownRows.slice(0, 40), found = {};
    for (const index of rows) {
      const detail = await detailOf(index), loss = detail.series && detail.series.loss;
      const arm = loss && (['free_graph', 'lockstep_graph', 'eager_a'].find(name => loss[name]) || Object.keys(loss)[0]);
      if (arm) found[(data.cases.name[index] || 'defaults') + ' (' + arm + ')'] = loss[arm];
    }
    dropPlots(curves);
    curves.replaceChildren(Object.keys(found).length ? curvePlot('loss', found, {note: 'of ' + plural(Object.keys(found).length, 'case') + ' of the table'})
      : element('p', {class: 'quiet'}, 'The first cases of the table left no losses.'));
  }}, 'draw the losses of the first 40 cases of the table');
  return element('section', {id: 'memory'}, element('h2', null, 'Memory and loss'), element('p', null, button), place);
}

function stackSection() {
  const environment = Object.entries(data.environment);
  return element('section', {id: 'stack'}, element('h2', null, 'Stack and run'),
    element('div', {class: 'columns'},
      element('div', null, element('h3', null, 'Software and hardware'), definitions(data.stack)),
      element('div', null, element('h3', null, 'Run'), definitions([['run', data.run.name], ['profile', data.run.profile], ['matrix', data.run.matrix],
        ['seed', String(data.run.seed)], ['started', data.run.started], ['ended', data.ending], ['launcher', data.run.engine], ...(data.run.parent ? [['repeats', data.run.parent]] : [])]),
      data.run.command && command(data.run.command, 'the command of the run')),
      environment.length > 0 && element('div', null, element('h3', null, 'Environment'), definitions(environment)),
      data.fixed_axes.length > 0 && element('div', null, element('h3', null, 'Axes that have one value in all cases'),
        element('details', null, element('summary', null, plural(data.fixed_axes.length, 'axis', 'axes')), definitions(data.fixed_axes.map(([name, value]) => [name, spelled(value)]))))));
}
