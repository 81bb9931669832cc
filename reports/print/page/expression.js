// The expression language of rules, matrix files and filters (matrix/expression/expression.h), over
// the axes of a case and some of its results. compileFilter() throws FilterError with a reason.

class FilterError extends Error {}

/** What a filter may ask besides axes. */
const resultVariables = {
  verdict: verdictOf,
  observed: observedOf,
  name: index => data.cases.name[index],
  id: index => data.cases.id[index],
  reason: index => data.reasons[data.cases.reason[index]],
  ranks: index => data.cases.ranks[index],
  seconds: index => data.cases.seconds[index],
  speedup: speedup,
  memory_bytes: index => figure(index, 'memory_bytes'),
  failing_checks: index => [...data.check_results[data.cases.checks[index]]]
    .flatMap((letter, at) => letter === 'f' ? [data.checks[at][0]] : [])
};
function known(name) { return name in resultVariables || data.axisOf.has(name) || data.fixedAxisOf.has(name); }
function variable(index, name) {
  return name in resultVariables ? resultVariables[name](index) : axisValue(index, name);
}

function tokensOf(text) {
  const token = /\s*(?:([A-Za-z_](?:\w|\.(?=[A-Za-z_]))*)|(\d+(?:\.\d+)*)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(==|!=|<=|>=|[<>+\-*\/%(){}\[\],]))/y;
  const found = [];
  while (token.lastIndex < text.length) {
    const at = token.lastIndex, match = token.exec(text);
    if (!match) {
      if (/^\s*$/.test(text.slice(at))) break;
      throw new FilterError('this sign is not part of the language: ' + text.slice(at).trim().slice(0, 12));
    }
    const quoted = match[3] !== undefined ? match[3] : match[4];
    if (match[1] !== undefined) found.push({kind: 'word', text: match[1]});
    else if (match[2] !== undefined) found.push({kind: 'number', text: match[2]});
    else if (quoted !== undefined) found.push({kind: 'text', text: quoted.replace(/\\(.)/g, '$1')});
    else found.push({kind: 'sign', text: match[5]});
  }
  return found;
}

const bindings = [['implies'], ['or'], ['and'], null, ['==', '!=', '<=', '<', '>=', '>', 'in'], ['+', '-'], ['*', '/', '%']];
const argumentsOf = {min: [1, 64], max: [1, 64], len: [1, 1], divides: [2, 2], word: [1, 1], contains: [2, 2],
  has_item: [2, 2], items: [1, 1], lower: [1, 1], integer: [1, 1], subset: [2, 2], overlaps: [2, 2],
  'with': [2, 64], without: [2, 64]};

/** A tree of {op, parts} and {literal} and {variable} and {word}. */
function parsed(text) {
  const tokens = tokensOf(text);
  let at = 0;
  const peek = what => at < tokens.length && tokens[at].kind !== 'text' && tokens[at].text === what;
  const take = what => peek(what) && Boolean(++at);
  const want = what => {
    if (!take(what)) throw new FilterError('want ' + what + (at < tokens.length ? ' before ' + tokens[at].text : ' at the end'));
  };
  function binary(level) {
    if (level === bindings.length) return unary();
    if (bindings[level] === null) return take('not') ? {op: 'not', parts: [binary(level)]} : binary(level + 1);
    let left = binary(level + 1);
    for (;;) {
      const op = bindings[level].find(peek);
      if (!op) return left;
      at += 1;
      if (op === 'implies') return {op, parts: [left, binary(level)]};
      left = {op, parts: [left, binary(level + 1)]};
    }
  }
  function unary() { return take('-') ? {op: 'negate', parts: [unary()]} : primary(); }
  function list(end) {
    const parts = [];
    while (!take(end)) {
      if (parts.length) want(',');
      parts.push(binary(0));
    }
    return parts;
  }
  function primary() {
    if (at >= tokens.length) throw new FilterError('something is missing at the end');
    if (take('(')) {
      const inner = binary(0);
      want(')');
      return inner;
    }
    if (take('{')) return {op: 'set', parts: list('}')};
    if (take('[')) return {op: 'set', parts: list(']')};
    const token = tokens[at++];
    if (token.kind === 'number') return {literal: Number(token.text), spelled: token.text};
    if (token.kind === 'text') return {literal: token.text};
    if (token.kind === 'sign') throw new FilterError('want a value before ' + token.text);
    if (token.text === 'true' || token.text === 'false') return {literal: token.text === 'true'};
    if (token.text === 'absent') return {literal: null};
    if (take('(')) {
      const parts = list(')');
      const bounds = Object.hasOwn(argumentsOf, token.text) ? argumentsOf[token.text] : null;
      if (!bounds) return {literal: token.text + '(' + parts.map(part => part.word || part.spelled || part.literal).join(', ') + ')'};
      if (parts.length < bounds[0] || parts.length > bounds[1])
        throw new FilterError(token.text + '() does not take ' + plural(parts.length, 'argument'));
      return {op: token.text + '()', parts};
    }
    return known(token.text) ? {variable: token.text} : {word: token.text, literal: token.text};
  }
  const tree = binary(0);
  if (at < tokens.length) throw new FilterError('this does not belong here: ' + tokens[at].text);
  return tree;
}

function sameValue(left, right) {
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every(one => right.includes(one));
  return left === right;
}
function callParts(text) {
  const match = /^(\w+)(?:\((.*)\))?$/.exec(String(text).trim());
  if (!match) return {word: String(text), list: []};
  return {word: match[1], list: (match[2] || '').split(',').map(one => one.trim()).filter(Boolean)};
}
function numbers(values) {
  for (const value of values)
    if (typeof value !== 'number') throw new FilterError('want a number, got ' + spelled(value));
  return values;
}

/** The value of a tree for a case. null is absent, with which arithmetic gives absent. */
function evaluated(tree, index) {
  if (tree.variable !== undefined) return variable(index, tree.variable);
  if (tree.op === undefined) return tree.literal;
  const part = number => evaluated(tree.parts[number], index);
  switch (tree.op) {
    case 'not': return part(0) !== true;
    case 'and': return part(0) === true && part(1) === true;
    case 'or': return part(0) === true || part(1) === true;
    case 'implies': return part(0) !== true || part(1) === true;
    case 'set': return tree.parts.map(one => evaluated(one, index));
  }
  const values = tree.parts.map((unused, number) => part(number));
  const [left, right] = values;
  switch (tree.op) {
    case '==': return sameValue(left, right);
    case '!=': return !sameValue(left, right);
    case 'in': {
      if (left === null || right === null) return false;
      if (Array.isArray(right)) return right.some(one => sameValue(one, left));
      return callParts(right).list.includes(String(left));
    }
  }
  if (values.includes(null)) return /[<>]/.test(tree.op) ? false : null;
  switch (tree.op) {
    case '<': return numbers(values) && left < right;
    case '<=': return numbers(values) && left <= right;
    case '>': return numbers(values) && left > right;
    case '>=': return numbers(values) && left >= right;
    case 'negate': return numbers(values) && -left;
    case '+': return numbers(values) && left + right;
    case '-': return numbers(values) && left - right;
    case '*': return numbers(values) && left * right;
    case '/': case '%':
      if (numbers(values) && right === 0) throw new FilterError('a division by zero; exclude it first: x == 0 or ...');
      return tree.op === '/' ? Math.trunc(left / right) : left % right;
    case 'min()': return Math.min(...numbers(values));
    case 'max()': return Math.max(...numbers(values));
    case 'len()': return left.length;
    case 'divides()': return numbers(values) && left !== 0 && right % left === 0;
    case 'word()': return callParts(left).word;
    case 'contains()': return String(left).includes(right);
    case 'has_item()': return String(left).split(',').includes(right);
    case 'items()': return String(left).split(',').map(one => one.replaceAll(' ', '')).filter(Boolean);
    case 'lower()': return String(left).toLowerCase();
    case 'integer()': return /^-?\d+$/.test(left) ? Number(left) : null;
    case 'subset()': return left.every(one => right.includes(one));
    case 'overlaps()': return left.some(one => right.includes(one));
    case 'with()': return [...new Set([...left, ...values.slice(1)])];
    case 'without()': return left.filter(one => !values.slice(1).includes(one));
  }
  throw new FilterError('unknown: ' + tree.op);
}

/** Names that are compared but are neither an axis nor one of its values are mistakes. */
function checkWords(tree) {
  const [left, right] = tree.parts || [];
  if (['==', '!=', 'in'].includes(tree.op)) {
    const holder = left.variable !== undefined ? left : right;
    const axis = holder.variable !== undefined ? data.axisOf.get(holder.variable) : undefined;
    const other = holder === left ? right : left;
    const sought = other.op === 'set' ? other.parts : [other];
    for (const one of sought) {
      if (holder.variable === undefined && one.word)
        throw new FilterError('`' + one.word + '` is no axis of this run');
      if (!axis || one.literal === undefined || one.literal === null) continue;
      const sample = axis.values.find(value => value !== null);
      if (typeof sample === 'string' && typeof one.literal !== 'string')
        throw new FilterError('axis `' + axis.name + '` has words: write "' + one.literal + '"');
      if (typeof sample === 'number' && typeof one.literal !== 'number')
        throw new FilterError('axis `' + axis.name + '` has numbers, got ' + one.literal);
    }
  }
  for (const one of tree.parts || []) checkWords(one);
}

/** A function that tells whether a case is wanted. A single word is looked for in names. */
function compileFilter(text) {
  if (!text.trim()) return () => true;
  const tree = parsed(text);
  if (tree.op === undefined && typeof tree.literal === 'string') {
    const sought = tree.literal.toLowerCase();
    return index => (data.cases.name[index] + ' ' + data.cases.id[index] + ' ' + verdictOf(index)).toLowerCase().includes(sought);
  }
  checkWords(tree);
  if (tree.variable !== undefined && typeof variable(0, tree.variable) !== 'boolean')
    throw new FilterError('`' + tree.variable + '` is no condition: compare it with a value');
  return index => evaluated(tree, index) === true;
}
