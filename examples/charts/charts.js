// SPDX-License-Identifier: Apache-2.0
"use strict";
// Draws the charts of a report with uPlot. charts.py describes them in JSON.
(() => {
  const ROW = 40, BAR = 20;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const element = (name, parent, properties) => parent.appendChild(Object.assign(document.createElement(name), properties));
  const number = value => value.toLocaleString("en", {maximumFractionDigits: Math.abs(value) < 10 ? 4 : 1});

  // Seconds in the unit that suits `range`.
  function time(seconds, range) {
    const [factor, unit] = range < 1e-3 ? [1e6, "µs"] : range < 1 ? [1e3, "ms"] : [1, "s"];
    return number(+(seconds * factor).toPrecision(6)) + " " + unit;
  }

  function legend(figure, entries) {
    const list = element("div", figure, {className: "legend"});
    for (const {name, color} of entries)
      element("span", list, {textContent: name}).prepend(
        Object.assign(document.createElement("i"), {style: `background: var(--${color})`}));
  }

  // The options that all charts share: theme colours, drag to zoom, a tooltip.
  function options(height, axes, describe) {
    const axis = more => ({stroke: () => css("ink"), font: "12px system-ui, sans-serif",
      grid: {stroke: () => css("line"), width: 1}, ticks: {stroke: () => css("line"), width: 1}, ...more});
    return {
      width: 300, height, legend: {show: false}, axes: axes.map(axis), cursor: {drag: {x: true, y: false, dist: 5}, y: false},
      scales: {x: {time: false}}, series: [{}],
      hooks: {setCursor: [chart => tooltip(chart, describe)]},
    };
  }

  function tooltip(chart, describe) {
    const {left, top} = chart.cursor, figure = chart.root.parentElement.parentElement;
    const tip = figure.querySelector(".tip"), words = left < 0 ? null : describe(chart, left, top);
    tip.hidden = !words;
    if (!words) return;
    if (tip.textContent !== words) tip.textContent = words;
    const box = figure.getBoundingClientRect(), over = chart.over.getBoundingClientRect();
    const x = over.left - box.left + left, y = over.top - box.top + Math.max(top, 0);
    tip.style.left = Math.max(4, Math.min(x + 12, box.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = (top > 70 ? y - tip.offsetHeight - 12 : y + 18) + "px";
  }

  // Makes the chart, which has the width of its figure, and its buttons and keys.
  function create(figure, spec, opts, data, steps) {
    const frame = element("div", figure, {tabIndex: 0});
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", `${spec.title}. Chart. The arrow keys show values, plus and minus zoom, 0 shows all.`);
    element("div", figure, {className: "tip", hidden: true}).setAttribute("aria-live", "polite");
    const chart = new uPlot(opts, data, frame);
    new ResizeObserver(() => chart.setSize({width: frame.clientWidth, height: opts.height})).observe(frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.redraw());
    const [first, last] = [opts.full?.[0] ?? data[0][0], opts.full?.[1] ?? data[0].at(-1)];
    const show = (min, max) => chart.setScale("x", {min: Math.max(first, min), max: Math.min(last, max)});
    const move = (zoom, shift) => {
      const {min, max} = chart.scales.x, half = (max - min) / 2 * zoom, middle = (min + max) / 2 + shift * (max - min);
      const inside = Math.max(first + half, Math.min(last - half, middle));
      show(inside - half, inside + half);
    };
    const buttons = [["+", "Zoom in", () => move(0.5, 0)], ["−", "Zoom out", () => move(2, 0)],
      ["◀", "Earlier", () => move(1, -0.5)], ["▶", "Later", () => move(1, 0.5)],
      ...(spec.views ?? []).map(([name, min, max]) => [name, "", () => show(min, max)]), ["All", "", () => show(first, last)]];
    if (spec.rows) {
      const bar = element("div", figure, {className: "buttons"});
      for (const [name, label, onclick] of buttons)
        element("button", bar, {type: "button", textContent: name, onclick, ariaLabel: label || null, title: label});
    }
    let at = -1, row = 0;
    frame.addEventListener("keydown", event => {
      const key = {"+": buttons[0][2], "=": buttons[0][2], "-": buttons[1][2], 0: () => show(first, last)}[event.key];
      const [dx, dy] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key] ?? [];
      if (event.ctrlKey || event.metaKey || event.altKey || !(key || dx !== undefined)) return;
      event.preventDefault();
      if (key) return key();
      row = Math.max(0, Math.min((spec.rows?.length ?? 1) - 1, row + dy));
      const {min, max} = chart.scales.x, places = steps(row).filter(([x]) => x >= min && x <= max);
      at = Math.max(0, Math.min(places.length - 1, at + dx));
      if (places.length) chart.setCursor({left: chart.valToPos(places[at][0], "x"), top: places[at][1](chart)});
    });
    if (spec.views?.length) show(spec.views[0][1], spec.views[0][2]);
    return chart;
  }

  function lines(figure, spec) {
    const isTime = spec.xName === "time", range = spec.x.at(-1) - spec.x[0];
    const place = x => isTime ? time(x, range) : `${spec.xName} ${x}`;
    const opts = options(230, [
      {label: isTime ? undefined : spec.xName, size: 32, labelSize: 20, labelFont: "12px system-ui, sans-serif",
        incrs: isTime ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
        values: (chart, splits) => splits.map(x => isTime ? time(x, range) : x)},
      {size: 52, values: (chart, splits) => splits.map(number)}], chart => {
      const i = chart.cursor.idx;
      return i == null ? null : [place(spec.x[i]), ...spec.lines.map(one => `${one.name}: ${number(one.values[i])}`)].join("\n");
    });
    opts.series.push(...spec.lines.map(one => ({stroke: () => css(one.color), width: 2, points: {show: spec.x.length < 3}})));
    if (spec.x.length === 1) opts.scales.x.range = () => [spec.x[0] - 1, spec.x[0] + 1];
    if (spec.fromZero) opts.scales.y = {range: (chart, min, max) => [0, (max || 1) * 1.05]};
    if (spec.lines.length > 1) legend(figure, spec.lines);
    create(figure, spec, opts, [spec.x, ...spec.lines.map(one => one.values)],
      () => spec.x.map((x, i) => [x, chart => chart.valToPos(spec.lines.at(-1).values[i], "y")]));
  }

  function timeline(figure, spec) {
    const byRow = spec.rows.map(() => []);
    for (const [row, kind, start, end, note] of spec.spans) byRow[row].push({kind, start, end, note});
    const last = Math.max(...byRow.flat().map(span => span.end), 1e-9);
    const top = (chart, row) => chart.valToPos(row, "y") + ROW - BAR - 4; // of the bar, below the name of its row
    const opts = options(ROW * spec.rows.length + 40, [
      {size: 32, values: (chart, splits) => splits.map(x => time(x, chart.scales.x.max - chart.scales.x.min))},
      {show: false}], (chart, left, y) => {
      const row = Math.floor(chart.posToVal(y, "y")), x = chart.posToVal(left, "x");
      const near = 3 * (chart.scales.x.max - chart.scales.x.min) / chart.over.clientWidth;
      const away = span => Math.max(span.start - x, x - span.end, 0);
      const found = (byRow[row] ?? []).filter(span => away(span) <= near).sort((a, b) => away(a) - away(b))[0];
      return found ? `${spec.rows[row]}\n${spec.kinds[found.kind].name}: ${time(found.end - found.start, found.end - found.start)}`
        + (found.note ? "\n" + found.note : "") : null;
    });
    opts.full = [0, last];
    opts.scales.y = {range: () => [0, spec.rows.length], dir: -1};
    opts.series.push({show: true, paths: () => null, points: {show: false}});
    opts.hooks.draw = [chart => {
      const {ctx} = chart, ratio = devicePixelRatio, {left, width} = chart.bbox, {min, max} = chart.scales.x;
      ctx.save();
      Object.assign(ctx, {textAlign: "left", textBaseline: "alphabetic"});
      ctx.beginPath();
      ctx.rect(left, chart.bbox.top, width, chart.bbox.height);
      ctx.clip();
      byRow.forEach((spans, row) => {
        const y = chart.bbox.top + top(chart, row) * ratio;
        for (const {kind, start, end} of spans) {
          if (end < min || start > max) continue;
          const x = chart.valToPos(start, "x", true), to = chart.valToPos(end, "x", true);
          ctx.fillStyle = colors[spec.kinds[kind].color] ?? css(spec.kinds[kind].color);
          ctx.fillRect(x, y, Math.max(to - x, ratio / 2), BAR * ratio);
        }
        ctx.fillStyle = css("ink");
        ctx.font = `${12 * ratio}px system-ui, sans-serif`;
        ctx.fillText(spec.rows[row], left + 2 * ratio, y - 4 * ratio);
      });
      ctx.restore();
    }];
    let colors = {};
    opts.hooks.drawClear = [() => { colors = Object.fromEntries(spec.kinds.map(kind => [kind.color, css(kind.color)])); }];
    legend(figure, spec.kinds);
    create(figure, spec, opts, [[0, last], [0, 0]],
      row => byRow[row].map(span => [(span.start + span.end) / 2, chart => top(chart, row) + BAR / 2]));
  }

  const charts = JSON.parse(document.getElementById("charts").textContent);
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const spec = charts[figure.dataset.chart];
    (spec.rows ? timeline : lines)(figure, spec);
  }
})();
