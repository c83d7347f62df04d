"use strict";
// Draws the interactive charts from the page's own data, in place of the static drawings. Needs uPlot; loads nothing.
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const colour = name => getComputedStyle(root).getPropertyValue(name).trim();
  const palette = 8, none = "–";

  // Numbers, as package report prints them.
  const grouped = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  const plain = v => Math.abs(v) >= 99.95 ? (v < 0 ? "-" : "") + grouped(Math.abs(v)) : String(Number(v.toPrecision(3)));
  const stepped = (v, step, names) => {
    let i = 0;
    for (; i < names.length - 1 && Math.abs(v) >= step * 0.9995; i++) v /= step;
    return plain(v) + " " + names[i];
  };
  const duration = s => {
    const a = Math.abs(s);
    if (a === 0) return "0 s";
    if (a < 0.9995e-6) return plain(s * 1e9) + " ns";
    if (a < 0.9995e-3) return plain(s * 1e6) + " µs";
    if (a < 0.9995) return plain(s * 1e3) + " ms";
    return plain(s) + " s";
  };
  const quantity = (v, unit) => {
    if (v == null || !isFinite(v)) return none;
    switch (unit) {
      case "ops/s": return plain(v) + " IOPS";
      case "bytes/s": return stepped(v, 1024, ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"]);
      case "bytes": return stepped(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
      case "us": case "µs": return duration(v / 1e6);
      case "s": return duration(v);
      case "bool": return v ? "yes" : "no";
      case "Hz": return stepped(v, 1000, ["Hz", "kHz", "MHz", "GHz"]);
      case "count": case "": return plain(v);
    }
    return plain(v) + " " + unit;
  };
  // Beside an axis millions are counted as such, and a unit in words stands in the title.
  const ourUnits = ["ops/s", "bytes/s", "bytes", "us", "s", "%", "bool", "Hz", "ratio", "count", ""];
  const axisLabel = (v, unit) => {
    if (!ourUnits.includes(unit)) unit = "";
    if (v == null || Math.abs(v) < 1e6 || unit !== "ops/s" && unit !== "count" && unit !== "") return quantity(v, unit);
    return (Math.abs(v) < 1e9 ? plain(v / 1e6) + " M" : plain(v / 1e9) + " G") + (unit === "ops/s" ? " IOPS" : "");
  };
  const elapsed = s => {
    const sign = s < 0 ? "-" : "", t = Math.round(Math.abs(s)), two = n => String(n).padStart(2, "0");
    return sign + (t < 3600 ? Math.floor(t / 60) : Math.floor(t / 3600) + ":" + two(Math.floor(t / 60) % 60)) + ":" + two(t % 60);
  };
  const origin = Date.parse(page.origin);
  const when = s => {
    if (s == null) return none;
    const at = new Date(origin + s * 1000), utc = at.toISOString().slice(11, 19) + " UTC";
    return elapsed(s) + " (" + (at.getTimezoneOffset() ? at.toTimeString().slice(0, 8) + ", " : "") + utc + ")";
  };

  // Round steps for an axis; sizes are cut in powers of 1024.
  const roundSteps = (max, unit, whole) => {
    if (unit === "bool") return [1];
    let base = 1;
    if (unit === "bytes/s" || unit === "bytes") while (base * 1024 <= max) base *= 1024;
    const out = [];
    for (let p = -9; p < 16; p++) for (const m of [1, 2, 2.5, 5]) out.push(m * 10 ** p * base);
    return whole ? out.filter(Number.isInteger) : out;
  };
  const powersOfTen = (low, high) => {
    const out = [];
    for (let v = low; v <= high * 1.001; v *= 10) out.push(v);
    return out;
  };
  const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

  const charts = new Map(); // id -> uPlot
  const specs = new Map(page.charts.map(c => [c.id, c]));
  const reset = document.getElementById("reset");
  let zoom = null, following = false;

  const zoomAll = range => {
    if (following) return;
    following = true;
    zoom = range;
    for (const [id, u] of charts) {
      const c = specs.get(id);
      const whole = { min: c.start, max: c.start + c.step * (c.values[0].length - 1) };
      u.setScale("x", range || whole);
    }
    following = false;
    if (reset) reset.hidden = !zoom;
  };

  const inPlot = (u, paint) => {
    const { ctx } = u, { left, top, width, height } = u.bbox, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    paint(ctx, left, width, ratio);
    ctx.restore();
  };
  const edges = (u, b) => {
    const low = Math.max(b.low, u.scales.y.min), high = Math.min(b.high, u.scales.y.max);
    return high > low ? [u.valToPos(high, "y", true), u.valToPos(low, "y", true)] : null;
  };

  // Bands and the expected value, behind the lines; the note below names them.
  const backdrop = c => u => inPlot(u, (ctx, left, width, ratio) => {
    (c.bands || []).forEach((b, i) => {
      const at = edges(u, b);
      if (!at) return;
      ctx.globalAlpha = 0.16;
      ctx.fillStyle = colour("--band" + i % 3);
      ctx.fillRect(left, at[0], width, at[1] - at[0]);
      ctx.globalAlpha = 1;
    });
    if (c.expected == null) return;
    const y = u.valToPos(c.expected, "y", true);
    ctx.strokeStyle = colour("--soft");
    ctx.setLineDash([7 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
  });
  const moments = u => {
    const { ctx } = u, { left, top, width, height } = u.bbox, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.font = 11 * ratio + "px " + getComputedStyle(document.body).fontFamily;
    const ends = [0, 0, 0], words = [];
    for (const m of page.marks || []) {
      if (m.at < u.scales.x.min || m.at > u.scales.x.max) continue;
      const x = u.valToPos(m.at, "x", true), w = ctx.measureText(m.text).width + 10 * ratio;
      const right = x + w > left + width, begins = right ? x - w : x;
      let row = 0;
      while (row < ends.length && ends[row] > begins) row++;
      ctx.strokeStyle = colour(m.kind === "fault" ? "--invalid" : "--soft");
      ctx.lineWidth = ratio;
      ctx.setLineDash(m.kind === "fault" ? [] : [3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, top - 8 * ratio);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      if (row === ends.length) continue; // no room; the line is there, and the table of events
      ends[row] = begins + w;
      words.push([m.text, x + (right ? -4 : 4) * ratio, (10 + 12 * row) * ratio, right ? "right" : "left", ctx.strokeStyle]);
    }
    ctx.setLineDash([]);
    ctx.lineWidth = 4 * ratio;
    ctx.strokeStyle = colour("--paper"); // no line of another moment goes through words
    for (const [text, x, y, align, ink] of words) {
      ctx.textAlign = align;
      ctx.fillStyle = ink;
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
    }
    ctx.restore();
  };

  const draw = figure => {
    const c = specs.get(figure.id);
    if (!c || charts.has(c.id)) return;
    const x = Array.from(c.values[0], (_, i) => c.start + i * c.step);
    const many = c.names.length > 6;
    const narrow = figure.clientWidth < 560;
    const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { stroke: () => colour("--line"), size: 4 }, font: "11px " + getComputedStyle(document.body).fontFamily };
    const options = {
      width: figure.clientWidth, height: narrow ? 230 : 270, padding: [30, 22, 0, 0],
      scales: {
        x: { time: false },
        y: c.log ? { distr: 3, range: () => c.log } : c.cap ? { range: () => [0, c.cap] } : { range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max((high ?? 0) * 1.06, (c.expected ?? 0) * 1.06) || 1] },
      },
      axes: [
        { ...axis, incrs: timeSteps, values: (_, v) => v.map(elapsed), grid: { show: false }, size: 30 },
        c.log ? { ...axis, size: 86, splits: () => powersOfTen(...c.log), values: (_, v) => v.map(n => axisLabel(n, c.unit)) } :
        { ...axis, size: 86, space: 44, incrs: roundSteps(c.cap ?? Math.max(c.expected ?? 0, ...c.values.map(v => v.reduce((a, b) => Math.max(a, b ?? 0), 0))), c.unit, c.whole), values: (_, v) => v.map(n => axisLabel(n, c.unit)) },
      ],
      series: [
        { label: "Time", value: (_, v) => when(v) },
        ...c.names.map((name, i) => ({
          label: name, width: many ? 1 : 1.5, alpha: many ? 0.7 : 1, points: { show: false },
          stroke: () => colour("--s" + i % palette), dash: i >= palette ? [4 + 3 * Math.floor(i / palette), 3] : undefined,
          value: (_, v) => quantity(v, c.unit),
        })),
      ],
      cursor: { sync: { key: "run", scales: ["x", null] }, drag: { x: true, y: false, uni: 10 }, points: { size: 6 } },
      hooks: {
        drawClear: [backdrop(c)],
        setLegend: [u => figure.classList.toggle("at", u.legend.idx != null)], // at rest it has no values
        draw: [moments],
        setSelect: [u => {
          if (u.select.width < 5) return;
          zoomAll({ min: u.posToVal(u.select.left, "x"), max: u.posToVal(u.select.left + u.select.width, "x") });
          u.setSelect({ width: 0, height: 0 }, false);
        }],
      },
    };
    options.cursor.drag.setScale = false;
    const u = new uPlot(options, [x, ...c.values], figure);
    figure.classList.add("live");
    charts.set(c.id, u);
    u.over.addEventListener("dblclick", () => zoomAll(null));
    if (zoom) u.setScale("x", zoom);
    keyboard(u, c);
    if (many) pickers(figure, u);
  };

  // Arrow keys move the cursor of a focused chart, Escape undoes the zoom; legend entries answer to Enter and space.
  const keyboard = (u, c) => {
    u.over.tabIndex = 0;
    u.over.setAttribute("role", "application");
    u.over.setAttribute("aria-label", c.title + ": arrow keys read values, Escape resets the zoom");
    u.over.addEventListener("keydown", e => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (e.key === "Escape") zoomAll(null);
      if (!step) return;
      e.preventDefault();
      const i = Math.min(u.data[0].length - 1, Math.max(0, (u.cursor.idx ?? 0) + step));
      u.setCursor({ left: u.valToPos(u.data[0][i], "x"), top: u.over.clientHeight / 2 });
    });
    u.root.querySelectorAll(".u-legend .u-series:not(:first-child) th").forEach(th => {
      th.tabIndex = 0;
      th.setAttribute("role", "button");
      th.title = "Show or hide";
      th.addEventListener("keydown", e => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        th.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      });
    });
  };
  const pickers = (figure, u) => {
    const box = document.createElement("p");
    box.className = "pick screen";
    for (const [text, show] of [["Show all", true], ["Hide all", false]]) {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = text;
      b.addEventListener("click", () => u.batch(() => u.series.forEach((_, i) => i && u.setSeries(i, { show }))));
      box.append(b);
    }
    figure.append(box);
  };

  const figures = [...document.querySelectorAll("figure.chart")];
  const nearby = new IntersectionObserver(seen => seen.forEach(s => {
    if (!s.isIntersecting) return;
    nearby.unobserve(s.target);
    draw(s.target);
  }), { rootMargin: "400px" });
  figures.forEach(f => nearby.observe(f));
  const sized = new ResizeObserver(entries => entries.forEach(e => {
    const u = charts.get(e.target.id), w = Math.floor(e.contentRect.width);
    if (u && w > 0 && w !== u.width) u.setSize({ width: w, height: u.height });
  }));
  figures.forEach(f => sized.observe(f));
  if (reset) reset.addEventListener("click", () => zoomAll(null));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.filter(f => charts.has(f.id)).forEach(f => {
    charts.get(f.id).destroy();
    charts.delete(f.id);
    f.querySelector(".pick")?.remove();
    draw(f);
  }));

  // Heat maps: say what is under the pointer.
  for (const h of page.heats || []) {
    const figure = document.getElementById(h.id), image = figure.querySelector("image"), read = figure.querySelector(".read");
    figure.querySelector(".draw").addEventListener("pointermove", e => {
      const box = image.getBoundingClientRect();
      const i = Math.floor((e.clientX - box.left) / box.width * h.counts.length);
      const r = Math.floor((box.bottom - e.clientY) / box.height * (h.edges.length - 1));
      const column = h.counts[i];
      if (!column || column[r] === undefined) { read.textContent = ""; return; }
      const all = column.reduce((a, b) => a + b, 0);
      read.textContent = elapsed(h.start + i * h.step) + ", " + duration(h.edges[r]) + " to " + duration(h.edges[r + 1]) + ": " + grouped(column[r]) + " operations" + (all ? ", " + plain(100 * column[r] / all) + " % of this time" : "");
    });
  }
  // On paper there is nothing to open: what belongs there is opened first. Plan and journal stay out.
  const paper = document.querySelectorAll("details.paper");
  addEventListener("beforeprint", () => paper.forEach(d => { d.dataset.was = d.open; d.open = true; }));
  addEventListener("afterprint", () => paper.forEach(d => { d.open = d.dataset.was === "true"; }));
})();
