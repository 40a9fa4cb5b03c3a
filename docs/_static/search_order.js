// Order of search results: Sphinx's own scores, with decision records after all other pages.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => (docname.startsWith("adr/") ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
