// Elements: everything that is shown is made here from text nodes, so what a rank printed can
// never become markup.

/** element('a', {href, class, onclick, ...}, children...): strings become text. */
function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'css') for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (value === true) node.setAttribute(name, '');
    else node.setAttribute(name, value);
  }
  for (const child of children.flat(3))
    if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}
function badge(kind, text) {
  return element('span', {class: 'badge kind-' + kind},
    element('span', {class: 'sign', 'aria-hidden': 'true'}, kinds[kind].sign), text);
}
function verdictBadge(index) { return badge(kindOf(index), verdictOf(index)); }
function sign(kind) {
  return element('span', {class: 'sign kind-' + kind, role: 'img', 'aria-label': kinds[kind].label}, kinds[kind].sign);
}
function caseLink(index, text) {
  return element('a', {href: linkWith({case: data.cases.id[index]})}, text || data.cases.name[index]);
}
/** head: names; rows: lists of cells, which are strings, numbers or nodes. */
function table(head, rows, properties) {
  const body = rows.map(cells => element('tr', null, cells.map((cell, column) =>
    element(column === 0 && !head ? 'th' : 'td',
      {class: typeof cell === 'number' ? 'number' : undefined, scope: column === 0 && !head ? 'row' : undefined}, cell))));
  return element('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': (properties || {}).label || 'table'},
    element('table', null,
      head && element('thead', null, element('tr', null, head.map(name => element('th', {scope: 'col'}, name)))),
      element('tbody', null, body)));
}
function say(text) { document.getElementById('spoken').textContent = text; }

/** A command with a button that copies it. */
function command(text, label) {
  const button = element('button', {type: 'button', class: 'copy', 'aria-label': 'copy ' + (label || 'this line')}, 'copy');
  button.addEventListener('click', async () => {
    if (await copied(text)) {
      button.textContent = 'copied';
      say('copied');
      setTimeout(() => { button.textContent = 'copy'; }, 1500);
    } else {
      button.textContent = 'select it by hand';
    }
  });
  return element('span', {class: 'command'}, element('code', null, text), button);
}
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (refused) {
    // A page of the file system may have no clipboard; the old way works there.
    const area = element('textarea', {class: 'unseen', 'aria-hidden': 'true'});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
/** The parts of "a == b and c in {d, e}", so that each can be read on its own. */
function conditionChips(expression) {
  return expression.split(' and ').map(part => element('code', {class: 'chip'}, part));
}
