// The page of one case: what it is, why it has its verdict, what probably caused it, the line that
// runs it again, and what its ranks did.

function sentenceOf(index) {
  const differing = (data.cases.name[index] || '').split(/,(?![^\[(]*[\])])/).filter(Boolean);
  return [
    element('p', {class: 'lead'}, 'This case runs on ' + plural(data.cases.ranks[index], 'rank') + ' of ' + (data.run.device === 'cuda' ? 'GPUs' : 'the simulated device') +
      (differing.length ? ' and differs from the defaults in ' : ' with the defaults.'), differing.map(part => element('code', {class: 'chip'}, part))),
    element('p', {class: 'quiet'}, 'It is in the plan as ' + data.whys[data.cases.why[index]] + '; the plan expects that ' + data.expectations[data.cases.expect[index]] + '.')];
}
function messagePart(one, repro) {
  const rows = ['got', 'want', 'why', 'next'].filter(name => one[name] && one[name] !== repro);
  const states = one.check && (data.checks.find(([name]) => name === one.check) || [])[1];
  return element('article', {class: 'failing'},
    element('h3', null, one.what),
    element('p', {class: 'quiet small'}, [one.check, one.rank === null ? '' : 'rank ' + one.rank, states && 'it states: ' + states].filter(Boolean).join(' \u00b7 ')),
    element('dl', null, rows.map(name => [element('dt', null, name), element('dd', null, name === 'next' && one[name].startsWith('./') ? command(one[name], 'the next command') : one[name])])));
}
function causesPart(symptoms) {
  if (!symptoms.length) return null;
  return element('div', {class: 'causes'}, symptoms.map(symptom => [
    element('h2', null, 'Likely causes of ' + symptom.symptom),
    element('ol', null, symptom.likely.map(cause => element('li', {class: cause.fired.length ? 'fired' : undefined},
      element('p', null, cause.fired.length > 0 && element('strong', null, cause.fired.join(', ') + ' failed: '), cause.cause),
      element('dl', null, element('dt', null, 'fix'), element('dd', null, cause.fix), element('dt', null, 'confirm'), element('dd', null, cause.confirm)))))]),
  element('p', {class: 'small quiet'}, 'Ranked by the checks that failed, then by how common they are. docs/guide/a-case-failed.md goes on from here; docs/reference/checks.md says what each check looks at.'));
}

const phaseOrder = ['validate', 'init', 'build', 'eager', 'warmup', 'capture', 'replay', 'compare', 'teardown_graph', 'teardown_comm', 'teardown_process'];
function phaseColor(phase) { return ink('phase-' + Math.max(0, phaseOrder.indexOf(phase))); }
function phasesPart(detail) {
  const ranks = (detail.ranks || []).filter(rank => rank.phases.length);
  if (!ranks.length) return null;
  const spans = ranks.flatMap((rank, lane) => rank.phases.map(([phase, arm, begin, ms, ended]) => ({lane, begin, end: begin + ms, open: !ended, name: phase,
    color: () => phaseColor(phase), text: 'rank ' + rank.rank + ': ' + phase + (arm ? ' of ' + arm : '') + '\n' + shortNumber(ms) + ' ms' + (ended ? '' : ', not ended')})));
  const open = ranks.filter(rank => rank.phases.some(span => !span[4]));
  const label = 'phases of ' + plural(ranks.length, 'rank') + (open.length ? '; not ended: ' + open.map(rank => 'rank ' + rank.rank + ' in ' + rank.phases.at(-1)[0]).join(', ') : '');
  const seen = phaseOrder.filter(phase => spans.some(span => span.name === phase));
  return [timelinePlot('phases of every rank', label, ranks.map(rank => 'rank ' + rank.rank), spans, 'ms', {note: open.length ? '\u2014 framed: not ended' : ''}),
    element('ul', {class: 'legend'}, seen.map(phase => element('li', null, element('span', {class: 'swatch', css: {background: 'var(--phase-' + phaseOrder.indexOf(phase) + ')'}}), ' ' + phase)))];
}

/** Step times of the arms as boxes over their single values. */
function stepTimesPlot(curves) {
  const arms = Object.keys(curves || {}).sort();
  if (!arms.length) return null;
  const sorted = arms.map(arm => curves[arm].values.filter(value => value !== null).sort((a, b) => a - b));
  const at = (values, share) => values[Math.min(values.length - 1, Math.floor(share * values.length))];
  return plot('step times', 'step times: ' + arms.map((arm, number) => arm + ' has a median of ' + shortNumber(at(sorted[number], 0.5)) + ' ms').join(', '), () => ({
    grid: {left: 110, right: 16, top: 10, bottom: 40},
    tooltip: {trigger: 'item', formatter: hit => hit.seriesType === 'boxplot' ? arms[hit.dataIndex] + '\nmedian ' + shortNumber(at(sorted[hit.dataIndex], 0.5)) + ' ms' : shortNumber(hit.value[0]) + ' ms'},
    xAxis: {type: 'log', name: 'ms', nameLocation: 'middle', nameGap: 22, axisLabel: {formatter: shortNumber},
      min: range => range.min * 0.8, max: range => range.max * 1.25},
    yAxis: {type: 'category', data: arms},
    dataZoom: wheelZoom,
    series: [{type: 'boxplot', itemStyle: {color: 'transparent', borderColor: ink('text')}, boxWidth: [8, 26],
      data: sorted.map(values => [0, 0.25, 0.5, 0.75, 1].map(share => at(values, share)))},
    {type: 'scatter', symbolSize: 6, itemStyle: {opacity: 0.7}, data: sorted.flatMap((values, arm) => values.map(value => [value, arms[arm]]))}]
  }), {note: 'slowest rank; box: quartiles'});
}
function rankMemoryPlot(ranks) {
  const measured = (ranks || []).filter(rank => Object.values(rank.peak_bytes).some(Boolean));
  if (!measured.length) return null;
  const quantities = ['allocated', 'reserved', 'pool', 'device'].filter(name => measured.some(rank => rank.peak_bytes[name]));
  return plot('peak memory by rank', 'peak memory: ' + measured.map(rank => 'rank ' + rank.rank + ' allocated ' + bytesText(rank.peak_bytes.allocated || 0)).join(', '), () => ({
    legend: {}, tooltip: {trigger: 'axis', axisPointer: {type: 'shadow'}, valueFormatter: bytesText},
    grid: {left: 72, right: 16, top: 28, bottom: 30},
    xAxis: {type: 'category', data: measured.map(rank => 'rank ' + rank.rank)},
    yAxis: {type: 'value', axisLabel: {formatter: bytesText}},
    series: quantities.map(name => ({name, type: 'bar', data: measured.map(rank => rank.peak_bytes[name] || 0)}))
  }));
}
function censusPart(graphs) {
  if (!graphs || !graphs.length) return null;
  const types = [...new Set(graphs.flatMap(graph => Object.keys(graph.census)))].sort();
  return element('section', null, element('h2', null, 'Graphs'),
    element('p', {class: 'quiet small'}, 'What the first rank with graphs captured.'),
    table(['arm', 'graph', 'status', 'nodes', ...types, 'capture ms', 'pool'], graphs.map(graph => [graph.arm, graph.graph, graph.status, graph.nodes,
      ...types.map(type => graph.census[type] || 0), digits(graph.ms, 2), bytesText(graph.pool_bytes)]), {label: 'captured graphs'}));
}
function checksPart(index, detail) {
  const letters = data.check_results[data.cases.checks[index]], required = new Set(detail.required);
  const names = {f: ['product', 'failed'], u: ['coverage', 'saw nothing'], p: ['ok', 'passed'], n: ['skipped', 'not applicable']};
  const parts = Object.entries(names).map(([letter, [kind, word]]) => {
    const found = data.checks.filter((unused, at) => letters[at] === letter);
    if (!found.length) return null;
    return element('details', {open: letter === 'f' || letter === 'u'}, element('summary', null, sign(kind), ' ' + found.length + ' ' + word),
      element('dl', {class: 'checks'}, found.map(([name, states]) => [element('dt', null, name, required.has(name) && element('span', {class: 'note'}, 'required')), element('dd', null, states)])));
  });
  if (!parts.some(Boolean)) return element('section', null, element('h2', null, 'Checks'), element('p', {class: 'quiet'}, 'No result of a check is in the folder of the attempt.'));
  return element('section', null, element('h2', null, 'Checks'), parts);
}
function logPart(ranks) {
  const logs = (ranks || []).filter(rank => rank.log);
  if (!logs.length) return null;
  return element('section', null, element('h2', null, 'Ends of the logs'),
    logs.map((rank, number) => element('details', {open: number === 0}, element('summary', null, 'rank ' + rank.rank), element('pre', {tabindex: '0'}, rank.log))));
}
function earlierPart(index) {
  const facts = data.cross_run, heading = element('h2', null, 'This case in earlier runs');
  if (facts.unknown) return element('section', null, heading, element('p', {class: 'quiet'}, facts.unknown));
  const verdicts = facts.sequences[facts.of[index]];
  const rows = facts.runs.map(([run, started, stack], number) => [started, run, stack, verdicts[number]]).filter(row => row[3] !== null).reverse();
  return element('section', {id: 'earlier'}, heading,
    [facts.since[index], facts.flaky[index]].filter(Boolean).map(text => element('p', null, text)),
    rows.length ? table(['started', 'run', 'stack', 'verdict'], rows, {label: 'earlier runs'})
      : element('p', {class: 'quiet'}, 'None of the last ' + plural(facts.runs.length, 'run') + ' has this case.'));
}

/** Where the case stands in the table, so that one can read through failures. */
function neighbours(index) {
  const at = shownRows.indexOf(index);
  if (at < 0) return null;
  const link = (position, text) => position >= 0 && position < shownRows.length && element('a', {href: linkWith({case: data.cases.id[shownRows[position]]})}, text);
  return element('span', {class: 'quiet'}, link(at - 1, '\u2190 previous'), ' ' + (at + 1) + ' of ' + shownRows.length + ' ', link(at + 1, 'next \u2192'));
}

async function showCase(index) {
  const detail = await detailOf(index), id = data.cases.id[index], series = detail.series || {};
  const place = document.getElementById('case');
  dropPlots(place);
  const repro = './graphproof repro ' + data.run.name + '/' + id;
  const group = 'arms-' + id;
  const curves = [
    curvePlot('loss', series.loss, {group}),
    curvePlot('gradient norm', series.grad_norm, {group}),
    curvePlot('largest difference between arms', series.difference, {group, zero: true, flat: true}),
    curvePlot('largest difference, in units in the last place', series.ulp, {group, zero: true, flat: true}),
    stepTimesPlot(series.step_ms),
    curvePlot('memory by arm', series.memory, {group, format: bytesText, zero: true}),
    rankMemoryPlot(detail.ranks)].filter(Boolean);
  const facts = [['case', id], ['name', data.cases.name[index] || 'defaults'], ['verdict', verdictOf(index)], ['observed', observedOf(index)], ['outcome rule', String(data.cases.rule[index])], ['attempt', detail.attempt + (detail.again ? ' (' + detail.again + ')' : '')],
    ['last phase', detail.phase || 'none'], ['time', secondsText(data.cases.seconds[index])], ['isolation', data.isolations[data.cases.isolation[index]]], ['batch', detail.batch], ['start', detail.start],
    ['evidence', detail.artefacts || 'no folder'], ...(detail.node_dumps ? [['nodes of the graphs', detail.node_dumps]] : [])];
  const failing = detail.failing.map(one => messagePart(one, repro));
  place.replaceChildren(
    element('p', {class: 'back'}, element('a', {href: linkWith({case: undefined, part: 'cases'})}, '\u2190 all cases'), ' ', neighbours(index)),
    element('h1', {class: 'case-name'}, verdictBadge(index), observedOf(index).startsWith('fail') && ' this case ' + data.deeds[data.cases.observed[index]]),
    ...sentenceOf(index),
    element('div', {class: 'reason kind-' + kindOf(index)}, element('p', null, element('strong', null, data.reasons[data.cases.reason[index]]),
      element('span', {class: 'quiet'}, ' (rule ' + data.cases.rule[index] + ' of docs/reference/verdicts.md' + (observedOf(index) !== verdictOf(index) ? '; observed ' + observedOf(index) : '') + ')')),
    element('p', null, command(repro, 'the line that runs this case again'))),
    ...(detail.divergence ? [element('p', {class: 'divergence'}, element('strong', null, 'First divergent tensor: '), detail.divergence)] : []),
    ...(failing.length || detail.symptoms.length ? [element('div', {class: 'why'}, element('div', {id: 'case-failing'}, failing.length > 0 && element('h2', null, 'What failed'), failing), causesPart(detail.symptoms))] : []),
    ...(detail.full ? [] : [element('p', {class: 'quiet'}, 'In a run of so many cases the page has curves and phases of the failures and of the first others only. The evidence is in ' + (detail.artefacts || 'the run folder') + '; ', command('./graphproof explain ' + data.run.name + '/' + id, 'the line that explains this case'))]),
    ...(curves.length ? [element('h2', null, 'Arms'), element('div', {class: 'plots', id: 'case-plots'}, curves)] : []),
    ...(phasesPart(detail) || []),
    ...[censusPart(detail.graphs), checksPart(index, detail), logPart(detail.ranks), earlierPart(index)].filter(Boolean),
    element('div', {class: 'columns'},
      element('div', null, element('h2', null, 'Facts'), definitions(facts)),
      element('div', null, element('h2', null, 'Figures'), definitions(Object.entries(detail.figures).map(([name, value]) => [name.replaceAll('_', ' '), name.endsWith('_bytes') ? bytesText(value) : shortNumber(value)]))),
      element('div', null, element('h2', null, 'Axes'), element('details', {open: data.axes.length < 12}, element('summary', null, 'those that differ between cases'), definitions(data.axes.map(axis => [axis.name, spelled(axisValue(index, axis.name))])))),
      Object.keys(detail.environment).length > 0 && element('div', null, element('h2', null, 'Environment of the case'), definitions(Object.entries(detail.environment)))));
}
