"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const KEPT = "murmurcast-theme";
  const NARROW = 600, LINE = 22; // pixels: of a chart, and of a name in its legend
  const TOOLS = ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"];
  const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: TOOLS };

  // A page opened from a file may not be allowed to remember anything.
  const recall = () => { try { return localStorage.getItem(KEPT); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem(KEPT, theme); } catch { /* not remembered */ } };

  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

  // A table that is wider than its place says so, in words and by fading out where it goes on.
  const measure = () => {
    for (const table of document.querySelectorAll(".table")) {
      const hidden = table.scrollWidth - table.clientWidth;
      const isWide = hidden > 2;
      table.toggleAttribute("data-wide", isWide);
      table.dataset.more = isWide && table.scrollLeft < hidden - 2 ? "right" : "";
      const before = table.previousElementSibling;
      const words = before && before.classList.contains("more") ? before : null;
      if (isWide && !words) {
        const line = document.createElement("p");
        line.className = "more";
        line.textContent = "This table is wider than the page: scroll it sideways \u2192";
        table.before(line);
      } else if (!isWide && words) words.remove();
    }
  };
  for (const table of document.querySelectorAll(".table")) table.addEventListener("scroll", measure, { passive: true });
  window.addEventListener("resize", measure);

  // rrggbb, of which so many percent are seen.
  const seenThrough = (colour, percent) => {
    const parts = [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return `rgba(${parts.join(", ")}, ${percent === undefined ? 1 : percent / 100})`;
  };

  // Only what is a colour may name a variable: a run could be called "var(--ink)".
  const tinted = (value, key, look) => {
    if (typeof value === "string") {
      if (!/color/i.test(key)) return value;
      const either = /^var\(--either-(\w{6})-(\w{6})(?:-(\d+))?\)$/.exec(value);
      if (either) return seenThrough(either[isDark() ? 2 : 1], either[3]);
      const named = /^var\((--[\w-]+)\)$/.exec(value);
      return named ? look.getPropertyValue(named[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((inner) => tinted(inner, key, look));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, tinted(inner, name, look)]));
  };

  const draw = () => {
    const look = getComputedStyle(root);
    for (const chart of document.querySelectorAll("figure.chart")) {
      const spec = tinted(JSON.parse(chart.querySelector("script").textContent), "", look);
      const plot = chart.querySelector(".plot");
      if (plot.clientWidth < NARROW && spec.layout.legend?.orientation === "v") {
        // Names beside a narrow chart would leave nothing of it: they go below, and it grows by as much.
        const names = spec.data.filter((line) => line.showlegend !== false).length;
        Object.assign(spec.layout.legend, { orientation: "h", x: 0, y: -0.25, yanchor: "top" });
        spec.layout.height = Number(spec.layout.height) + LINE * names;
        plot.style.height = `${spec.layout.height}px`;
      }
      Plotly.react(plot, spec.data, spec.layout, CONFIG);
    }
  };

  const refresh = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"}`);
    draw();
  };

  const kept = recall();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    refresh();
  });
  dark.addEventListener("change", refresh);

  // Paper is white, and folded text cannot be unfolded on it.
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    for (const folded of document.querySelectorAll("details:not([open])")) {
      folded.open = true;
      folded.dataset.folded = "";
    }
    draw();
  });
  window.addEventListener("afterprint", () => {
    if (before === undefined) delete root.dataset.theme;
    else root.dataset.theme = before;
    for (const folded of document.querySelectorAll("details[data-folded]")) {
      folded.open = false;
      delete folded.dataset.folded;
    }
    draw();
  });
  refresh();
  measure();
})();
