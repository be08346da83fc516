"""The page's style sheet: one column, system fonts, light or dark as the screen is, plain on paper."""

from __future__ import annotations

from typing import Final

from dragoman_spark.report.look import COLOURS

_SHEET: Final = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.15rem;font-weight:600;letter-spacing:.01em;margin:0 0 .15rem;color:var(--soft)}
h1 b{color:var(--ink)}
h2{font-size:1.3rem;line-height:1.3;font-weight:650;margin:.1rem 0 .5rem;letter-spacing:-.01em;overflow-wrap:anywhere}
.period{font-size:1.55rem;line-height:1.25;font-weight:650;letter-spacing:-.015em;margin:0 0 1.4rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.6rem,1fr));gap:1px;margin:0 0 1.2rem;padding:0;list-style:none;background:var(--line);border:1px solid var(--line);border-radius:.6rem;overflow:hidden}
.tiles li{background:var(--paper);padding:.9rem 1rem}
.tiles b{display:block;font-size:1.45rem;line-height:1.2;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.02em;white-space:nowrap}
.tiles span{display:block;font-size:.88rem}
.tiles small{display:block;font-size:.78rem;line-height:1.35;color:var(--soft)}
.verdict{margin:0 0 1.2rem;padding:.75rem 1rem;border-left:.28rem solid var(--soft);background:var(--paper);border-radius:0 .4rem .4rem 0}
.verdict.good{border-color:var(--green)}
.verdict.bad{border-color:var(--bad)}
.alarms{margin:0 0 1.2rem;padding:.75rem 1rem .75rem 2.1rem;border:1px solid var(--bad);border-radius:.4rem;background:var(--paper)}
.alarms a{color:var(--bad)}
nav{display:flex;flex-wrap:wrap;gap:.35rem .5rem;font-size:.88rem}
nav a{color:var(--ink);text-decoration:none;padding:.15rem .7rem;border:1px solid var(--line);border-radius:1rem;background:var(--paper)}
nav a:hover,nav a:focus{border-color:var(--blue)}
section{margin:2.6rem 0 0;padding:1.4rem 1.5rem 1.2rem;background:var(--paper);border:1px solid var(--line);border-radius:.6rem;scroll-margin-top:1rem}
.label{margin:0;font-size:.8rem;font-weight:600;letter-spacing:.04em;color:var(--blue)}
.reading{margin:0 0 .9rem;color:var(--soft);font-size:.92rem;max-width:48rem}
figure{margin:.4rem 0 .8rem;overflow-x:auto}
figure svg{display:block;width:100%;min-width:35rem;height:auto;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:.2rem 0 .4rem}
table{border-collapse:collapse;width:100%;font-size:.84rem;line-height:1.4;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);font-size:.84rem;padding:.5rem 0 .25rem}
th,td{text-align:left;padding:.28rem .7rem .28rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft);vertical-align:bottom}
td:last-child,th:last-child{padding-right:0}
tbody tr:last-child td{border-bottom:0}
.n{text-align:right}
td.n,td.s{white-space:nowrap}
td.t{overflow-wrap:anywhere;min-width:12rem}
td.good{color:var(--green);font-weight:600}
td.bad{color:var(--bad);font-weight:600}
details{margin:.3rem 0 0}
summary{cursor:pointer;font-size:.86rem;color:var(--soft);padding:.2rem 0}
details .scroll{max-height:26rem;overflow:auto}
footer{margin:2.4rem 0 0;font-size:.82rem;color:var(--soft)}
@media (max-width:40rem){main{padding:1.4rem .7rem 3rem}section{padding:1.1rem .9rem;margin-top:1.3rem}.period{font-size:1.25rem}h2{font-size:1.12rem}.tiles{grid-template-columns:1fr 1fr}.tiles b{font-size:1.2rem}}
@media print{body{font-size:11pt;background:none}main{max-width:none;padding:0}nav,details{display:none}section{break-inside:avoid;border:0;padding:0;margin-top:1.6rem}.tiles,.tiles li,.verdict,.alarms{background:none}.tiles li{border-right:1px solid var(--line)}figure svg{min-width:0}}
"""


def sheet() -> str:
    """The style sheet with its colours, for light screens and paper, and for dark screens."""
    light = "".join(f"--{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--{name}:{pair[1]};" for name, pair in COLOURS.items())
    return (
        f":root{{color-scheme:light dark;--ground:#f4f5f8;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{--ground:#0f1218;{dark}}}}}{_SHEET}"
    )
