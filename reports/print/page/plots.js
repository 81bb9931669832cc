// Plots: ECharts, unpacked when the first plot comes into view, or soon after the page is ready. Every plot can
// be zoomed with the wheel or by dragging its slider. Colours come from the style sheet, so plots
// follow the theme. Paper shows every plot, also those that never came into view.

let loading = null;
function echartsReady() {
  if (!loading)
    loading = unpacked(document.getElementById('plot-library').textContent).then(text => {
      // The content security policy knows the digest of this script.
      const script = document.createElement('script');
      script.textContent = text;
      document.head.append(script);
    });
  return loading;
}

const drawn = new Map();  // a plot's element -> how to make its options
const inView = new IntersectionObserver(entries => {
  for (const entry of entries)
    if (entry.isIntersecting) {
      inView.unobserve(entry.target);
      draw(entry.target);
    }
}, {rootMargin: '300px'});
const resized = new ResizeObserver(entries => {
  for (const entry of entries) {
    const chart = window.echarts && echarts.getInstanceByDom(entry.target);
    if (chart) chart.resize();
  }
});

async function draw(node) {
  await echartsReady();
  drawNow(node);
}
/** Draws at once. The library is there already. */
function drawNow(node) {
  if (!node.isConnected) return;
  const {options, onclick, group} = drawn.get(node);
  const chart = echarts.getInstanceByDom(node) || echarts.init(node, null, {renderer: 'canvas'});
  chart.setOption(themed(options()), {notMerge: true});
  chart.off('click');
  if (onclick) chart.on('click', onclick);
  if (group) {
    chart.group = group;
    echarts.connect(group);
  }
  node.dataset.drawn = 'yes';
}
/** A print takes the page as it is when this returns, so nothing can be awaited. */
addEventListener('beforeprint', () => {
  if (!window.echarts) return;
  for (const node of drawn.keys()) if (!node.dataset.drawn && node.offsetWidth) drawNow(node);
});
function redrawPlots() {
  for (const node of drawn.keys()) {
    if (!node.isConnected) drawn.delete(node);
    else if (node.dataset.drawn) draw(node);
  }
}
function dropPlots(root) {
  for (const node of root.querySelectorAll('.plot')) {
    if (window.echarts && echarts.getInstanceByDom(node)) echarts.getInstanceByDom(node).dispose();
    inView.unobserve(node);
    resized.unobserve(node);
    drawn.delete(node);
  }
}
/**
 * A figure with a plot. `options` is a function, called again when the theme changes. `label` says
 * in words what the plot shows.
 */
function plot(title, label, options, more) {
  const settings = more || {};
  const node = element('div', {class: 'plot', role: 'img', 'aria-label': label, css: {height: (settings.height || 220) + 'px'}});
  drawn.set(node, {options, onclick: settings.onclick, group: settings.group});
  inView.observe(node);
  resized.observe(node);
  return element('figure', {class: settings.wide ? 'wide-plot' : undefined},
    element('figcaption', null, element('strong', null, title), settings.note && element('span', {class: 'quiet'}, ' ' + settings.note)), node);
}

function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); }
// Okabe and Ito's colours, which people with any kind of colour vision tell apart.
const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#7f7f7f', '#b8a800'];
const dashes = ['solid', 'dashed', 'dotted'];

function themed(options) {
  const axis = {axisLine: {lineStyle: {color: ink('line')}}, axisTick: {lineStyle: {color: ink('line')}},
    axisLabel: {color: ink('quiet'), fontSize: 11}, nameTextStyle: {color: ink('quiet'), fontSize: 11},
    splitLine: {lineStyle: {color: ink('faint')}}};
  const withAxis = one => ({...axis, ...one, axisLabel: {...axis.axisLabel, ...(one.axisLabel || {})},
    splitLine: {...axis.splitLine, ...(one.splitLine || {})}});
  const each = value => Array.isArray(value) ? value.map(withAxis) : withAxis(value);
  return {
    animation: false,
    color: palette,
    textStyle: {color: ink('text'), fontFamily: 'system-ui, sans-serif'},
    grid: {left: 56, right: 16, top: 28, bottom: 40},
    ...options,
    legend: options.legend && {type: 'scroll', top: 0, right: 8, left: 56, itemHeight: 8, itemWidth: 18,
      textStyle: {color: ink('text'), fontSize: 11}, pageTextStyle: {color: ink('text')}, ...options.legend},
    // Rich text is drawn, so it needs no markup and no style attributes.
    tooltip: {renderMode: 'richText', confine: true, backgroundColor: ink('raised'), borderColor: ink('line'),
      textStyle: {color: ink('text'), fontSize: 12}, ...(options.tooltip || {})},
    xAxis: options.xAxis && each(options.xAxis),
    yAxis: options.yAxis && each(options.yAxis)
  };
}
const wheelZoom = [{type: 'inside', xAxisIndex: 0, filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false}];

/** A plot of curves {name: {steps, values}} over steps; null if there are none. */
function curvePlot(title, curves, more) {
  const names = Object.keys(curves || {}).sort();
  if (!names.length) return null;
  const all = names.flatMap(name => curves[name].values).filter(value => value !== null);
  const settings = more || {};
  const flat = settings.flat && all.length && all.every(value => value === 0);
  if (flat)
    return element('figure', null, element('figcaption', null, element('strong', null, title)),
      element('p', {class: 'all-zero'}, sign('ok'), ' 0 in every step of ' + names.join(', ') + '.'));
  const last = names.map(name => name + ' ends at ' + shortNumber(curves[name].values.at(-1))).join('; ');
  return plot(title, title + ' by step: ' + last, () => ({
    legend: {},
    tooltip: {trigger: 'axis', valueFormatter: settings.format || shortNumber},
    xAxis: {type: 'value', name: 'step', nameLocation: 'middle', nameGap: 22, minInterval: 1, min: 'dataMin', max: 'dataMax'},
    yAxis: {type: 'value', scale: !settings.zero, axisLabel: {formatter: settings.format || shortNumber}},
    dataZoom: wheelZoom,
    series: names.map((name, number) => ({name, type: 'line', symbolSize: 4, showSymbol: curves[name].steps.length < 60,
      lineStyle: {width: 1.6, type: dashes[Math.floor(number / palette.length + number % 2) % 3]},
      data: curves[name].steps.map((step, at) => [step, curves[name].values[at]])}))
  }), {group: settings.group, note: settings.note});
}
function shortNumber(value) {
  if (value === null || value === undefined) return 'not finite';
  if (value === 0 || Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/**
 * Bars on lanes over time. spans: [{lane, begin, end, name, color, text}], lanes: names, time in
 * `unit`.
 */
function timelinePlot(title, label, lanes, spans, unit, more) {
  const shorten = (text, width) => width < 30 ? '' : text.slice(0, Math.floor(width / 6.2));
  return plot(title, label, () => ({
    grid: {left: 64, right: 16, top: 8, bottom: 62},
    tooltip: {formatter: hit => spans[hit.dataIndex].text},
    xAxis: {type: 'value', min: 0, max: 'dataMax', name: unit, nameLocation: 'middle', nameGap: 20, axisLabel: {formatter: shortNumber}},
    yAxis: {type: 'category', inverse: true, data: lanes, axisTick: {show: false}, splitLine: {show: true}},
    dataZoom: [...wheelZoom, {type: 'slider', height: 14, bottom: 8, filterMode: 'weakFilter', labelFormatter: '',
      borderColor: ink('line'), textStyle: {color: ink('quiet')}}],
    series: [{type: 'custom', clip: true, encode: {x: [1, 2], y: 0},
      data: spans.map(span => [span.lane, span.begin, span.end]),
      renderItem(unused, api) {
        const span = spans[unused.dataIndex];
        const begin = api.coord([api.value(1), api.value(0)]), end = api.coord([api.value(2), api.value(0)]);
        const height = Math.min(22, api.size([0, 1])[1] * 0.78), width = Math.max(1, end[0] - begin[0] - 0.5);
        return {type: 'rect', shape: {x: begin[0], y: begin[1] - height / 2, width, height, r: 1.5},
          style: {fill: span.color(), stroke: span.open ? ink('product') : undefined, lineWidth: span.open ? 2 : 0},
          textContent: {style: {text: shorten(span.name, width), fill: ink('on-bar'), fontSize: 10}},
          textConfig: {position: 'inside'}};
      }}]
  }), {height: 84 + Math.max(1, lanes.length) * 26, wide: true, ...more});
}
