// The first screen: the verdict in words, what is new, the groups of failures with what explains
// and what cures each, coverage, time and stack.

/** What cases with this verdict do, after "6 cases ...". */
function deed(verdict, count) {
  const many = count !== 1, s = many ? '' : 's';
  const [head, second, third] = verdict.split('.');
  if (head !== 'fail') {
    if (head === 'unexercised') return (many ? 'leave' : 'leaves') + ' a required check without anything to look at';
    if (head === 'not_run') return many ? 'were not run' : 'was not run';
    if (head === 'infra') return 'met trouble of the infrastructure (' + second + ')';
    return (many ? 'end ' : 'ends ') + verdict;
  }
  const deeds = {
    hang: 'hang' + s + ' in ' + (third || 'a phase'), eager: 'fail' + s + ' in eager already, so this is no defect of graphs',
    numerics: 'compute' + s + ' something else than eager', capture: 'fail' + s + ' to capture soundly',
    not_replayed: (many ? 'do' : 'does') + ' not replay', constraint: 'break' + s + ' a rule',
    crash: (many ? 'crash' : 'crashes') + (third ? ' (' + third + ')' : ''), silent: 'end' + s + ' without a complete result',
    memory: (many ? 'fail' : 'fails') + ' on memory' + (third ? ' (' + third + ')' : ''),
    cleanup: 'leave' + s + ' something behind' + (third ? ' (' + third + ')' : ''),
    isolation: 'fail' + s + ' only next to other cases', survived: 'hold' + s + ' a planted fault that no check caught'};
  return deeds[second] || 'end' + s + ' ' + verdict;
}
function countKinds() {
  const counts = {};
  for (const index of data.all) counts[kindOf(index)] = (counts[kindOf(index)] || 0) + 1;
  return counts;
}

/** The verdict: one word, and the sentences that belong to it. */
function verdictWords() {
  const counts = countKinds(), failing = data.groups.filter(group => !group.expected);
  const ways = failing.filter(group => group.verdict.startsWith('fail')).length;
  const rest = [];
  if (data.lost_evidence)
    rest.push('The evidence of ' + plural(data.lost_evidence, 'case') + ' is missing, so nothing shows any more that their verdicts are right.');
  if (data.ending !== 'finished') rest.push('The run did not finish (' + data.ending + ').');
  if (counts.expected) rest.push(plural(counts.expected, 'case') + ' fail' + (counts.expected === 1 ? 's' : '') + ', as the plan expects.');
  const caught = data.faults.filter(fault => fault.status === 'killed').length;
  if (data.faults.length)
    rest.push(caught + ' of ' + plural(data.faults.length, 'planted fault') + ' caught by ' + (caught === 1 ? 'its detector.' : 'their detectors.'));
  if (counts.coverage) rest.push(plural(counts.coverage, 'case') + ' did not show what was required.');
  if (counts.infra) rest.push(plural(counts.infra, 'case') + ' met trouble of the infrastructure.');
  if (counts.skipped) rest.push(plural(counts.skipped, 'case') + ' skipped.');
  const words = {
    0: ['ok', 'Acceptable', (counts.ok || 0) + ' of ' + plural(data.count, 'case') + ' ended well.'],
    1: ['product', 'Not acceptable', plural(counts.product || 0, 'case') + ' of ' + data.count + ' fail' +
      (counts.product === 1 ? 's' : '') + (ways ? ' in ' + plural(ways, 'way') : '') + '.'],
    3: ['infra', 'Not judged', 'Only the infrastructure failed.'],
    4: ['coverage', 'Not shown', 'No failure, but not everything that was required was seen.'],
    5: ['interrupted', 'Not finished', 'The run was interrupted; ./graphproof resume ' + data.run.name + ' goes on with it.']};
  const [kind, word, sentence] = words[data.exit_code] || ['product', 'Fault of graphproof', data.exit_meaning];
  return {kind, word, text: [sentence, ...rest].join(' ')};
}

function cureLine(group) {
  const cure = group.cure;
  if (!cure) return null;
  if (cure.settings)
    return cure.settings.map(one => element('p', {class: 'cure'}, element('span', {class: 'cure-word'}, 'cure'),
      command(one.setting, 'the cure'),
      one.passed === one.tried ? ' With it ' + (one.tried === 1 ? 'the same case passes.' : 'all ' + one.tried + ' pass.')
        : ' With it ' + one.passed + ' of ' + one.tried + ' pass.'));
  return element('p', {class: 'cure'}, element('span', {class: 'cure-word'}, cure.fired.length ? 'cure' : 'try'), cure.fix,
    element('span', {class: 'quiet'}, cure.fired.length ? ' (' + cure.cause + '; ' + cure.fired.join(', ') + ' failed)' : ' (most common: ' + cure.cause + ')'));
}
function groupCard(group) {
  const count = group.cases.length, kind = kindOf(group.cases[0]);
  const filter = group.expression && group.outside === 0 ? group.expression
    : count === 1 ? 'id == "' + data.cases.id[group.cases[0]] + '"'
    : (group.expected ? 'verdict == xfail and observed == ' : 'verdict == ') + literal(group.verdict);
  const shown = count === 1 ? linkWith({case: data.cases.id[group.cases[0]]}) : linkWith({filter, part: 'cases'});
  return element('article', {class: 'group kind-' + kind},
    element('h3', null, sign(kind), ' ', element('a', {href: shown}, plural(count, 'case') + ' ' + deed(group.verdict, count)),
      group.check && element('span', {class: 'quiet'}, ' ' + group.check),
      group.expected && element('span', {class: 'note'}, 'expected by the plan')),
    group.expression
      ? element('p', {class: 'where'}, conditionChips(group.expression), element('span', {class: 'proof'},
          (group.outside ? 'holds for all ' + count + ' such cases' : 'all ' + count + ' such cases') + ', ' + group.outside + ' of ' + group.others + ' others'))
      : count === 1 ? element('p', {class: 'where'}, caseLink(group.cases[0]))
      : element('p', {class: 'where quiet'}, 'No value of an axis tells these cases from the others.'),
    group.example && element('p', {class: 'evidence'}, group.example.what, group.example.got && ': ' + group.example.got),
    !group.example && element('p', {class: 'evidence'}, group.reason),
    group.titles.length > 0 && element('p', {class: 'evidence quiet'}, 'Why: ' + group.titles.join('; ') + '.'),
    cureLine(group));
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
  const words = verdictWords(), coverage = data.coverage, shown = 4;
  const [first, more] = [data.groups.slice(0, shown), data.groups.slice(shown)];
  const slots = data.run.device === 'cuda' ? plural(data.run.slots, 'GPU') : plural(data.run.slots, 'slot') + ' of the simulated device';
  return element('section', {id: 'overview', 'aria-label': 'overview'},
    element('div', {class: 'verdict kind-' + words.kind},
      element('h1', null, element('span', {class: 'sign', 'aria-hidden': 'true'}, kinds[words.kind].sign), ' ' + words.word),
      element('p', null, words.text, element('span', {class: 'quiet'}, ' Exit code ' + data.exit_code + '.'))),
    element('div', {class: 'first-screen'},
      element('div', {class: 'groups'},
        element('h2', null, data.groups.length ? 'What fails, by cause' : 'Nothing fails'),
        first.map(groupCard),
        more.length > 0 && element('details', null, element('summary', null, 'and ' + plural(more.length, 'more way', 'more ways')), more.map(groupCard)),
        !data.groups.length && quietRun()),
      element('aside', {class: 'side'},
        element('h2', null, 'New'), newsPart(),
        element('h2', null, 'Coverage'), coverageBar(),
        element('p', {class: 'small'}, coverage.planned + ' planned = ' + coverage.ran + ' ran + ' + coverage.rejected + ' rejected + ' + coverage.skipped +
          ' skipped + ' + coverage.not_run + ' not run. ' + (data.lost_evidence && coverage.unexercised === coverage.required_checks
            ? coverage.required_checks + ' required checks can no longer be shown.'
            : coverage.unexercised + ' of ' + coverage.required_checks + ' required checks saw nothing.')),
        element('h2', null, 'Run'),
        definitions([['time', secondsText(data.wall_seconds) + ' on ' + slots], ['started', data.run.started.replace('T', ' ').replace('Z', ' UTC')],
          ...data.stack.filter(([part]) => ['GPUs', 'NCCL', 'torch', 'CUDA', 'driver', 'MPI', 'host'].includes(part))]))));
}
/** What a run without failures has to say. */
function quietRun() {
  const gains = data.all.filter(index => speedup(index) !== null).map(speedup).sort((a, b) => a - b);
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
