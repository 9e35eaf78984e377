"""The style sheet of the HTML page of a plan, for light and dark screens and for print."""

STYLESHEET = """
:root { color-scheme: light dark;
  --ink: #1d2129; --soft: #5d6675; --page: #f6f7f9; --card: #ffffff; --rule: #dfe3e8;
  --create: #1a7f37; --update: #8a5a00; --remove: #b3261e; --note: #0b6bcb; --old: #ffe5e3; --new: #dff5e5; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e4e7ec; --soft: #9aa4b2; --page: #14171c; --card: #1c2027; --rule: #313742;
  --create: #57c373; --update: #e0b050; --remove: #ff8a80; --note: #6cb4ff; --old: #4a2320; --new: #1d3d28; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { overflow-wrap: anywhere; max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .35rem; }
h2 { font-size: 1.02rem; margin: 0; }
p { margin: .25rem 0; }
.quiet, .place, .says { color: var(--soft); }
code, .name, .symbol, .place, .detail { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 
  "Liberation Mono", monospace; font-size: .86em; overflow-wrap: anywhere; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; margin: 1.1rem 0; padding: 0; }
.counts li { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem;
  padding: .3rem .8rem; color: var(--soft); }
.counts b { color: var(--ink); font-size: 1.1rem; margin-right: .3rem; font-variant-numeric: tabular-nums; }
section { background: var(--card); border: 1px solid var(--rule); border-left: 4px solid var(--rule);
  border-radius: .5rem; margin: 1rem 0; padding: .85rem 1.1rem; }
section.remove, section.error { border-left-color: var(--remove); }
section.create { border-left-color: var(--create); }
section.update, section.warning { border-left-color: var(--update); }
section.note { border-left-color: var(--note); }
section.remove :is(h2, .symbol), section.error :is(h2, .symbol) { color: var(--remove); }
section.create :is(h2, .symbol) { color: var(--create); }
section.update :is(h2, .symbol), section.warning :is(h2, .symbol) { color: var(--update); }
section.note :is(h2, .symbol) { color: var(--note); }
.rows { list-style: none; margin: .6rem 0 0; padding: 0; }
.rows > li { display: grid; grid-template-columns: 1.1rem minmax(0, 1fr) fit-content(45%); column-gap: .6rem;
  align-items: baseline; padding: .4rem 0; border-top: 1px solid var(--rule); }
.rows > li.deep { padding-left: 1.7rem; }
.rows .rows { margin: .3rem 0 0; }
.rows > li:not(.group) { content-visibility: auto; contain-intrinsic-size: auto 2.2rem; }
[hidden] { display: none !important; }
#filters { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem; align-items: center;
  background: var(--page); margin: 1rem 0; padding: .6rem 0; border-bottom: 1px solid var(--rule); }
#filters :is(input, select, button) { font: inherit; color: var(--ink); background: var(--card); min-width: 0;
  border: 1px solid var(--rule); border-radius: .4rem; padding: .3rem .6rem; }
#filters input { flex: 1 1 16rem; }
#filters select { max-width: 16rem; }
#filters button { cursor: pointer; }
#filters :is(input, select, button, a):focus-visible { outline: 2px solid var(--note); outline-offset: 1px; }
#shown { color: var(--soft); font-variant-numeric: tabular-nums; white-space: nowrap; }
a.place { text-decoration-color: var(--rule); text-underline-offset: .2em; }
a.place:hover { color: var(--note); }
.name { font-weight: 600; overflow-wrap: anywhere; }
.group > div > .name + .detail:not(.remark) { display: inline; margin-left: .4rem; }
.place { text-align: right; }
.detail { display: block; white-space: pre-wrap; }
section.create .detail { display: inline; margin-left: .9rem; }
.label, .remark { color: var(--soft); }
del, ins { text-decoration: none; border-radius: .2rem; padding: 0 .15rem; }
del { background: var(--old); }
ins { background: var(--new); }
summary { cursor: pointer; color: var(--soft); }
pre { background: var(--page); border: 1px solid var(--rule); border-radius: .4rem; padding: .6rem .8rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  #filters { position: static; }
  #filters input { flex-basis: 100%; }
  .rows > li { grid-template-columns: 1.1rem minmax(0, 1fr); }
  .place { grid-column: 2; text-align: left; } }
@media print {
  :root { --page: #fff; --card: #fff; --ink: #000; --soft: #444; --rule: #bbb; --create: #1a7f37; --update: #8a5a00;
    --remove: #b3261e; --note: #0b6bcb; --old: #ffe5e3; --new: #dff5e5; }
  main { max-width: none; padding: 0; }
  #filters { display: none; }
  .rows > li { break-inside: avoid; content-visibility: visible !important; }
  body { font-size: 11px; } }
"""
