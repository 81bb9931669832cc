// The first screen: the verdict in words, what is new, the groups of failures with what explains
// and what cures each, coverage, time and stack.

function countKinds() {
  const counts = {};
  for (const index of data.all) counts[kindOf(index)] = (counts[kindOf(index)] || 0) + 1;
  return counts;
}

/** The lines of a group that its card has, by their labels; the page of a case has the others. */
const groupLines = {
  where: (group, code, text) => element('p', {class: code ? 'where' : 'where quiet'}, code && conditionChips(code), element('span', {class: code ? 'proof' : undefined}, text)),
  case: group => element('p', {class: 'where'}, caseLink(group.cases[0])),
  seen: (group, code, text) => element('p', {class: 'evidence'}, text, group.lines.filter(([label]) => label === 'got').map(line => ': ' + line[2])),
  known: (group, code, text) => element('p', {class: 'evidence quiet'}, 'Why: ' + text + '.'),
  cure: (group, code, text) => element('p', {class: 'cure'}, element('span', {class: 'cure-word'}, 'cure'), code && command(code, 'the cure'), ' ' + text),
  try: (group, code, text) => element('p', {class: 'cure'}, element('span', {class: 'cure-word'}, 'try'), text),
  since: (group, code, text) => element('p', {class: 'evidence'}, 'Since ' + text + '.')
};
function groupCard(group) {
  const count = group.cases.length;
  const filter = group.expression && group.outside === 0 ? group.expression
    : count === 1 ? 'id == "' + data.cases.id[group.cases[0]] + '"'
    : (group.expected ? 'verdict == xfail and observed == ' : 'verdict == ') + literal(group.verdict);
  const shown = count === 1 ? linkWith({case: data.cases.id[group.cases[0]]}) : linkWith({filter, part: 'cases'});
  return element('article', {class: 'group kind-' + group.kind},
    element('h3', null, sign(group.kind), ' ', element('a', {href: shown}, group.headline),
      group.check && element('span', {class: 'quiet'}, ' ' + group.check),
      group.expected && element('span', {class: 'note'}, 'expected by the plan')),
    group.lines.map(([label, code, text]) => groupLines[label] && groupLines[label](group, code, text)));
}

function coverageBar() {
  const counts = countKinds();
  const parts = Object.keys(kinds).filter(kind => counts[kind]);
  const label = parts.map(kind => counts[kind] + ' ' + kinds[kind].label).join(', ');
  return [
    element('div', {class: 'bar-of-kinds', role: 'img', 'aria-label': label},
      parts.map(kind => element('span', {class: 'kind-' + kind, css: {flex: counts[kind]}}))),
    element('ul', {class: 'legend'}, parts.map(kind => element('li', null, sign(kind), ' ' + counts[kind] + ' ' + kinds[kind].label)))];
}
function newsPart() {
  const facts = data.cross_run;
  if (facts.unknown) return element('p', {class: 'quiet'}, facts.unknown);
  if (!facts.last_run) return element('p', {class: 'quiet'}, 'The last ' + plural(facts.runs.length, 'run') + ' on this kind of device had other profiles.');
  const listed = (indexes, kind, word) => indexes.length > 0 && element('div', null, element('p', null, sign(kind), ' ' + plural(indexes.length, 'case') + ' ' + word),
    element('ul', {class: 'names'}, indexes.slice(0, 4).map(index => element('li', null, caseLink(index))),
      indexes.length > 4 && element('li', {class: 'quiet'}, 'and ' + (indexes.length - 4) + ' more')));
  return [element('p', {class: 'quiet'}, 'since run ' + facts.last_run),
    listed(facts.broke, 'product', 'broke'), listed(facts.healed, 'ok', 'healed'),
    facts.stack_changes.map(line => element('p', null, line)),
    !facts.broke.length && !facts.healed.length && element('p', null, 'No verdict changed.')];
}
function definitions(pairs) {
  return element('dl', {class: 'facts'}, pairs.map(([name, value]) => [element('dt', null, name), element('dd', null, value)]));
}

function overview() {
  const words = data.overview, shown = 4;
  const [first, more] = [data.groups.slice(0, shown), data.groups.slice(shown)];
  const slots = data.run.device === 'cuda' ? plural(data.run.slots, 'GPU') : plural(data.run.slots, 'slot') + ' of the simulated device';
  return element('section', {id: 'overview', 'aria-label': 'overview'},
    element('div', {class: 'verdict kind-' + words.kind},
      element('h1', null, element('span', {class: 'sign', 'aria-hidden': 'true'}, kinds[words.kind].sign), ' ' + words.word),
      element('p', null, words.sentence, element('span', {class: 'quiet'}, ' Exit code ' + data.exit_code + '.'))),
    element('div', {class: 'first-screen'},
      element('div', {class: 'groups'},
        element('h2', null, data.groups.length ? 'What fails, by cause' : 'Nothing fails'),
        first.map(groupCard),
        more.length > 0 && element('details', null, element('summary', null, 'and ' + plural(more.length, 'more way', 'more ways')), more.map(groupCard)),
        !data.groups.length && quietRun()),
      element('aside', {class: 'side'},
        element('h2', null, 'New'), newsPart(),
        element('h2', null, 'Coverage'), coverageBar(),
        element('p', {class: 'small'}, words.coverage + '.'),
        element('h2', null, 'Run'),
        definitions([['time', (data.wall_seconds > 0 ? secondsText(data.wall_seconds) : 'not known') + ' on ' + slots], ['started', data.run.started.replace('T', ' ').replace('Z', ' UTC')],
          ...data.stack.filter(([part]) => ['GPUs', 'NCCL', 'torch', 'CUDA', 'driver', 'MPI', 'host'].includes(part))]))));
}
/** What a run without failures has to say. */
function quietRun() {
  // Those of the part Benefit: a planted fault says nothing about speed.
  const gains = data.benefit.filter(one => one.graph_ms > 0).map(one => one.eager_ms / one.graph_ms).sort((a, b) => a - b);
  const slow = [...data.all].sort((a, b) => data.cases.seconds[b] - data.cases.seconds[a]).slice(0, 3);
  const ranks = data.cases.ranks.reduce((most, one) => Math.max(most, one), 0);
  const refused = data.all.filter(index => verdictOf(index) === 'pass.rejected').length;
  const judged = data.all.reduce((sum, index) => sum + checkCounts(index).p, 0);
  return [
    element('p', null, plural(data.count, 'case') + ' on up to ' + plural(ranks, 'rank') + '; ' + judged + ' checks passed.'),
    refused > 0 && element('p', null, plural(refused, 'combination') + ' that a rule forbids ' + (refused === 1 ? 'was' : 'were') + ' refused.'),
    gains.length > 0 && element('p', null, 'Steps with graphs are ' + digits(gains[Math.floor(gains.length / 2)], 1) + ' times as fast as eager ones in the median of ' + plural(gains.length, 'case') +
      ' (' + digits(gains[0], 1) + ' to ' + digits(gains.at(-1), 1) + ' times; ', element('a', {href: linkWith({part: 'benefit'})}, 'benefit'), ').'),
    element('p', null, 'The longest cases:'),
    element('ul', {class: 'names'}, slow.map(index => element('li', null, secondsText(data.cases.seconds[index]) + ' ', caseLink(index))))];
}
