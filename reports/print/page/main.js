// What starts the page, and what brings address and page together.

const parts = [];  // the sections of the run with their updates

function buildRun() {
  const builders = [['overview', 'Overview', overview], ['map', 'Heat map', heatMapSection], ['cases', 'Cases', casesSection], ['hazards', 'Hazards', hazardsSection],
    ['faults', 'Kill matrix', faultsSection], ['benefit', 'Benefit', benefitSection], ['schedule', 'Schedule', scheduleSection], ['memory', 'Memory', memorySection], ['stack', 'Stack', stackSection]];
  const place = document.getElementById('run'), nav = document.getElementById('nav');
  for (const [id, title, build] of builders) {
    const section = build();
    if (!section) continue;
    place.append(section);
    parts.push(section);
    nav.append(element('a', {href: '#part=' + id, 'data-part': id}, title));
  }
}
function updateRun() {
  for (const section of parts) if (section.update) section.update();
  // Links carry the present state, so they have to be made again when it changes.
  for (const link of document.querySelectorAll('#nav a')) link.setAttribute('href', linkWith({case: undefined, part: link.dataset.part}));
}

async function route() {
  state = parsedAddress();
  const index = state.case === undefined ? undefined : data.indexOf.get(state.case);
  document.getElementById('run').hidden = index !== undefined;
  document.getElementById('case').hidden = index === undefined;
  updateRun();
  if (index !== undefined) {
    await showCase(index);
    document.title = verdictOf(index) + ' ' + data.cases.name[index];
    scrollTo(0, 0);
  } else {
    document.title = 'graphproof ' + data.run.profile + ' on ' + data.run.device;
    dropPlots(document.getElementById('case'));
    document.getElementById('case').replaceChildren();
    const part = state.part && document.getElementById(state.part);
    if (part) part.scrollIntoView();
    if (state.case !== undefined) say('This run has no case ' + state.case);
  }
  document.body.dataset.shown = index === undefined ? 'run' : state.case;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? '\u2600' : '\u263e';
  redrawPlots();
}
function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  setTheme(system.matches ? 'dark' : 'light');
  system.addEventListener('change', () => setTheme(system.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
}

addEventListener('keydown', event => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === '/' && !typing && !document.getElementById('run').hidden) {
    document.getElementById('filter').focus();
    event.preventDefault();
  }
  if (event.key === 'Escape' && !document.getElementById('case').hidden) location.hash = linkWith({case: undefined, part: 'cases'});
});

async function start() {
  startTheme();
  await loadData();
  document.getElementById('bar-run').textContent = data.run.profile + ' on ' + data.run.device + ' \u00b7 ' + data.run.name;
  buildRun();
  addEventListener('hashchange', route);
  await route();
  document.body.dataset.ready = Math.round(performance.now());
  // A page that is printed before a plot came into view needs the library too.
  setTimeout(echartsReady, 300);
  // bench/report_page.cpp asks for it.
  if (state.timed) console.log('ready after ' + document.body.dataset.ready + ' ms');
}
start().catch(error => {
  document.getElementById('main').prepend(element('p', {class: 'mistake', role: 'alert'}, 'The page could not read its data: ' + error.message + '. summary.md has the same results.'));
  throw error;
});
