"""The chart of docs/performance.md."""

from html import escape
from itertools import cycle

from figures import Results, ratios, rivals_of
from peers import PEERS

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d")
LONGEST = 6.0  # bars beyond it are cut, and say so by their number


def chart(results: Results) -> str:
    """Bars of the rivals' times in multiples of Cuvil's, on the first number of threads, as SVG."""
    models = results["models"]
    rivals = list(zip(rivals_of(results), cycle(COLOURS), strict=False))
    left, unit, bar, gap = 150, 90, 12, 14
    width = left + unit * int(LONGEST) + 70
    height = 40 + len(models) * (len(rivals) * bar + gap)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for i, (rival, colour) in enumerate(rivals):
        x = left + 115 * i
        parts.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="17" font-size="12">{escape(PEERS[rival].name)}</text>')
    y = 30
    for name, model in models.items():
        middle = y + len(rivals) * bar / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle}" font-size="12" text-anchor="end">{escape(name)}</text>')
        for rival, colour in rivals:
            measured = ratios(model, rival)
            length = unit * min(measured[0], LONGEST) if measured else 0
            text = f"{measured[0]:.2f}" if measured else "cannot"
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar - 2}" fill="{colour}"/>')
            parts.append(f'<text x="{left + length + 4:.0f}" y="{y + bar - 3}" font-size="10">{text}</text>')
            y += bar
        y += gap
    x = left + unit
    parts.append(f'<line x1="{x}" y1="24" x2="{x}" y2="{height - 8}" stroke="black" stroke-dasharray="3 2"/>')
    parts.append(f'<text x="{x + 3}" y="{height - 4}" font-size="10">1 = Cuvil</text></svg>')
    return "\n".join(parts) + "\n"
