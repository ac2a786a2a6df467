# SPDX-License-Identifier: Apache-2.0
"""Writes an HTML report with interactive charts: one file that needs no network.

    page = Page("A title")
    page.add("<h1>A title</h1>")
    page.lines("Loss", x=[1, 2, 3], x_name="epoch", series=[("training", "train", [0.9, 0.5, 0.3])])
    page.write(path)

charts.js draws the charts with uPlot, which the folder uplot holds.
"""

import html
import json
import pathlib
import string

HERE = pathlib.Path(__file__).parent

PAGE = string.Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>$title</title>
<!-- The charts are drawn with uPlot:
$license -->
<style>
$styles
</style>
</head>
<body>
<main>
$body
</main>
<script type="application/json" id="charts">$charts</script>
<script>
$scripts
</script>
</body>
</html>
""")


def text(value):
    return html.escape(str(value))


def table(head, rows, caption):
    """Rows of plain values. The first column names its row; the others are numbers unless they are <code>."""
    heads = "".join(f"<th scope=col>{text(name)}</th>" for name in head)
    lines = ""
    for first, *rest in rows:
        cells = "".join(f"<td>{text(cell)}</td>" for cell in rest)
        lines += f"<tr><th scope=row>{text(first)}</th>{cells}</tr>"
    return (
        f'<div class=scroll tabindex=0 role=region aria-label="{text(caption)}"><table><caption>{text(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def tiles(pairs):
    return "<dl class=tiles>" + "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in pairs) + "</dl>"


class Page:
    def __init__(self, title):
        self.title = title
        self.parts = []
        self.charts = []

    def add(self, markup):
        self.parts.append(markup)

    def lines(self, title, x, x_name, series, from_zero=False):
        """A line chart. `series` holds (name, colour, values); a colour is a CSS variable in charts.css."""
        lines = [{"name": name, "color": color, "values": values} for name, color, values in series]
        self._chart({"title": title, "x": x, "xName": x_name, "lines": lines, "fromZero": from_zero})

    def timeline(self, title, rows, kinds, spans, views=()):
        """Rows of bars. `kinds` holds (name, colour); `spans` holds (row, kind, start, end, note) in seconds. `views`
        holds (name, start, end) for a button each; the first one is shown first."""
        kinds = [{"name": name, "color": color} for name, color in kinds]
        spans = sorted((row, kind, round(start, 9), round(end, 9), note) for row, kind, start, end, note in spans)
        self._chart({"title": title, "rows": rows, "kinds": kinds, "spans": spans, "views": views})

    def _chart(self, chart):
        self.add(f'<figure data-chart="{len(self.charts)}"><figcaption>{text(chart["title"])}</figcaption></figure>')
        self.charts.append(chart)

    def write(self, path):
        def read(name):
            return (HERE / name).read_text(encoding="utf-8").strip()

        # "<" would end the script element if a name contained "</script>".
        charts = json.dumps(self.charts, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        content = PAGE.substitute(
            title=text(self.title),
            license=read("uplot/LICENSE"),
            styles=read("uplot/uPlot.min.css") + "\n" + read("charts.css"),
            body="\n".join(self.parts),
            charts=charts,
            scripts=read("uplot/uPlot.iife.min.js") + "\n" + read("charts.js"),
        )
        pathlib.Path(path).write_text(content, encoding="utf-8")
