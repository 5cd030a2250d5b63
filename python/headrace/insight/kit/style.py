# SPDX-License-Identifier: Apache-2.0
"""The style of pages and charts: light, dark and printed, on desktop and phone.

Two colors have a fixed meaning: rust for data and waiting for it, blue for the training step.
"""

from __future__ import annotations

_LIGHT = """
--paper:#fcfcfa;--ink:#1b1e22;--faint:#5b6168;--rule:#d7d8d3;--grid:#e6e6e1;
--data:#a84a16;--step:#2d5b88;--mute:#8d939a;--good:#3d7350;--wash:#f3f3ee
"""
_DARK = """
--paper:#14171a;--ink:#e4e6e8;--faint:#a0a7ae;--rule:#363c42;--grid:#272c31;
--data:#e08c52;--step:#79a9d8;--mute:#7d858d;--good:#7cba91;--wash:#1c2024
"""
_SANS = '"Helvetica Neue",Helvetica,Arial,"Liberation Sans",system-ui,sans-serif'

PALETTES = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
"""
MARKS = f"""
text{{font:12.5px {_SANS};fill:var(--ink);font-variant-numeric:tabular-nums;
  stroke:var(--paper);stroke-width:4px;stroke-linejoin:round;paint-order:stroke}}
text.faint{{fill:var(--faint)}}text.strong{{font-weight:600}}
text.end{{text-anchor:end}}text.mid{{text-anchor:middle}}
text.title{{font-size:16px;font-weight:600}}rect.paper{{fill:var(--paper)}}
text.inside{{fill:var(--paper);stroke:none;font-size:14px}}
rect.data,circle.data{{fill:var(--data)}}rect.step,circle.step{{fill:var(--step)}}
rect.mute,circle.mute{{fill:var(--mute)}}rect.good{{fill:var(--good)}}
path{{fill:none;stroke-width:1}}
path.grid{{stroke:var(--grid)}}path.measured{{stroke:var(--ink);stroke-width:1.3}}
path.data-line{{stroke:var(--data)}}path.mute-line{{stroke:var(--mute)}}
path.step-line{{stroke:var(--step);stroke-width:1.6}}
path.good-line{{stroke:var(--good);stroke-width:1.6}}
circle.faint{{fill:var(--step);opacity:.28}}
path.stem{{stroke-width:1.6}}path.limit{{stroke:var(--data);stroke-dasharray:5 4}}
path.curve{{stroke:var(--step);stroke-width:2;stroke-linejoin:round}}
"""
STYLE = f"""
{PALETTES}
@media print{{:root{{color-scheme:light;{_LIGHT};--paper:#fff}}}}
*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 {_SANS}}}
main{{max-width:808px;margin:0 auto;padding:56px 24px 72px}}
h1,h2,p,ul,dl,figure,table{{margin:0;padding:0}}
header{{border-bottom:1px solid var(--ink);padding-bottom:28px}}
.run{{display:flex;flex-wrap:wrap;gap:4px 24px;justify-content:space-between;
  color:var(--faint);font-size:13.5px;margin-bottom:34px}}
.run b{{color:var(--ink);font-weight:600}}
.verdict{{font-size:13px;font-weight:600;letter-spacing:.09em;text-transform:uppercase}}
.verdict.bound{{color:var(--data)}}.verdict.fine{{color:var(--good)}}
h1{{font-size:31px;line-height:1.22;font-weight:600;letter-spacing:-.012em;margin:4px 0 20px;
  overflow-wrap:anywhere}}
.plain p{{margin:0 0 9px;font-size:17px;overflow-wrap:anywhere}}
dl.key{{display:grid;grid-template-columns:repeat(4,1fr);gap:18px 24px;margin-top:28px}}
dl.key div{{display:flex;flex-direction:column-reverse;justify-content:flex-end}}
dl.key dd{{margin:0;font-size:24px;line-height:1.25;font-weight:600;
  font-variant-numeric:tabular-nums}}
dl.key dt{{color:var(--faint);font-size:13.5px;line-height:1.4}}
section{{margin-top:50px}}
h2{{font-size:20px;line-height:1.3;font-weight:600;margin-bottom:10px}}
h2 .no{{color:var(--faint);font-weight:400;margin-right:10px}}
section>p{{margin-bottom:12px;max-width:66ch}}
.absent{{color:var(--faint)}}
figure{{margin:18px 0 30px}}
figcaption{{font-size:15px;margin-bottom:12px}}
figure>p{{color:var(--faint);font-size:14.5px;margin-top:10px;
  overflow-wrap:anywhere}}
svg{{display:block;width:100%;height:auto;overflow:visible}}svg.narrow{{display:none}}
ul.legend{{list-style:none;display:flex;flex-wrap:wrap;gap:4px 22px;font-size:14px;
  margin-bottom:12px}}
.key{{display:inline-block}}
span.key{{width:11px;height:11px;margin-right:8px}}
span.key.data{{background:var(--data)}}span.key.step{{background:var(--step)}}
{MARKS}
dl.terms{{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;font-size:15px}}
dl.terms dt{{font-weight:600}}dl.terms dd{{margin:0;color:var(--faint)}}
p.faint{{color:var(--faint);font-size:14.5px}}
img.wide{{display:block;width:100%;height:auto;margin-top:14px}}
pre{{background:var(--wash);padding:14px 16px;overflow-x:auto;
  font:14px/1.5 ui-monospace,"DejaVu Sans Mono",monospace}}
details{{margin-top:8px;font-size:14.5px}}
summary{{cursor:pointer;color:var(--faint)}}summary:hover{{color:var(--ink)}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;width:100%;margin:8px 0 12px;font-size:14.5px;line-height:1.4}}
th,td{{text-align:left;vertical-align:top;padding:6px 18px 6px 0;
  border-bottom:1px solid var(--grid);overflow-wrap:anywhere}}
th{{font-weight:600;border-bottom-color:var(--rule)}}
th.n,td.n{{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}}
th:last-child,td:last-child{{padding-right:0}}
ul.records{{list-style:none;display:grid;grid-template-columns:repeat(auto-fill,minmax(144px,1fr));
  gap:22px 18px;margin-top:14px}}
ul.records li{{font-size:13px;line-height:1.4;overflow-wrap:anywhere;
  border-top:3px solid var(--rule);padding-top:8px}}
ul.records li.slow{{border-top-color:var(--data)}}
ul.records img{{display:block;max-width:100%;height:108px;object-fit:contain;
  object-position:left bottom;margin-bottom:6px}}
ul.records .none{{height:108px;display:flex;align-items:end;color:var(--faint);margin-bottom:6px}}
ul.records b{{display:block;font-size:15px;font-variant-numeric:tabular-nums}}
ul.notes{{padding-left:1.2em}}ul.notes li{{margin-bottom:6px;overflow-wrap:anywhere}}
footer{{margin-top:56px;border-top:1px solid var(--rule);padding-top:14px;color:var(--faint);
  font-size:13.5px}}
@media (max-width:600px){{
  main{{padding:30px 18px 48px}}h1{{font-size:25px}}.plain p{{font-size:16px}}
  dl.key{{grid-template-columns:repeat(2,1fr)}}
  svg.wide{{display:none}}svg.narrow{{display:block}}
  ul.records{{grid-template-columns:repeat(2,1fr)}}
}}
@media print{{
  main{{padding:0;max-width:none}}section{{break-inside:auto;margin-top:34px}}
  figure,h2,ul.records li{{break-inside:avoid}}h2{{break-after:avoid}}details{{display:none}}
  rect,circle,span.key{{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
}}
"""
