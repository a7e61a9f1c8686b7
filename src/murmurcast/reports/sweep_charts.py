"""Interactive charts of a sweep."""

import html
from typing import Any

import numpy as np
import plotly.graph_objects as go

from murmurcast.reports.sweep_lines import Line, View
from murmurcast.reports.sweep_table import short_key
from murmurcast.runs.sweep import text_of

_TICKS = 12
_ROW, _LEGEND_ROW = 330, 20  # pixels


def against_axis(shown: View) -> list[tuple[str, go.Figure]]:
    """A figure for every panel, with its title."""
    return [(panel.title, _figure(panel.lines, shown)) for panel in shown.panels]


def _figure(lines: tuple[Line, ...], shown: View) -> go.Figure:
    figure = go.Figure()
    for place, line in enumerate(lines):
        figure.add_traces(_traces(line, shown, place))
    axis: dict[str, Any] = {"title": html.escape(short_key(shown.against), quote=False)}
    if shown.is_logarithmic:
        axis |= {"type": "log", "tickformat": "~g"}
    if shown.is_numeric and len(shown.values) <= _TICKS and not shown.is_drawn:
        axis |= {"tickvals": shown.values, "ticktext": [text_of(value) for value in shown.values]}
    if not shown.is_numeric:
        axis |= {"type": "category", "categoryorder": "array", "categoryarray": list(map(_safe, shown.values))}
    figure.update_xaxes(**axis)
    figure.update_yaxes(title=shown.metric.replace("_", " "))
    legend = {"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top", "font": {"size": 12}}
    height = max(_ROW + 90, _LEGEND_ROW * len(lines) + 80)
    return figure.update_layout(showlegend=len(lines) > 1, legend=legend, height=height)


def _traces(line: Line, shown: View, place: int) -> list[go.Scatter]:
    joined = shown.is_numeric and not shown.is_drawn and len(line.x) > 1
    name, x = _safe(line.name), line.x if shown.is_numeric else list(map(_safe, line.x))
    spread = None if joined or not np.any(line.spread) else {"array": line.spread, "thickness": 1, "width": 3}
    main = go.Scatter(
        x=x,
        y=line.mean,
        customdata=line.spread,
        error_y=spread,
        name=name,
        legendgroup=f"line {place}",
        mode="lines+markers" if joined else "markers",
        line={"color": line.style.colour, "dash": line.style.dash, "width": 2},
        marker={"color": line.style.colour, "symbol": line.style.marker, "size": 7},
        hovertemplate="%{fullData.name}<br>%{x}: %{y:.4f} ± %{customdata:.4f}<extra></extra>",
    )
    if not joined or not np.any(line.spread):
        return [main]
    band = go.Scatter(
        x=[*x, *x[::-1]],
        y=np.concatenate([line.mean + line.spread, (line.mean - line.spread)[::-1]]),
        fill="toself",
        fillcolor=line.style.band(8 if len(shown.panels[0].lines) > 4 else 16),
        line={"width": 0},
        legendgroup=f"line {place}",
        showlegend=False,
        hoverinfo="skip",
        mode="lines",
    )
    return [band, main]


def _safe(text: object) -> str:
    return html.escape(str(text), quote=False)
