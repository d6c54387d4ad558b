// Two charts: what an account had, and how fast the log grows.
(function () {
  "use strict";
  var pace, seen = [], points = [[], []];
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function made(place, data, stepped) {
    var axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    function clock(at) { return new Date(at * 1000).toISOString().slice(11, 19); }
    return new uPlot({
      width: Math.max(place.clientWidth, 260), height: 190, legend: { show: false }, cursor: { show: false },
      tzDate: function (at) { return uPlot.tzDate(new Date(at * 1000), "Etc/UTC"); },
      series: [{}, {
        label: place.dataset.label, stroke: colour("--accent"), width: 1.5, points: { show: false },
        paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined
      }],
      axes: [Object.assign({ values: function (_, ticks) { return ticks.map(clock); }, space: 90 }, axis), Object.assign({ size: 70 }, axis)]
    }, data, place);
  }
  function start() {
    document.querySelectorAll("[data-chart]").forEach(function (place) {
      var data = JSON.parse(place.dataset.chart);
      if (data[0].length > 1) made(place, data, true);
    });
    var room = document.getElementById("pace");
    if (room) pace = made(room, points, false);
    look();
  }
  function look() {
    var place = document.querySelector("[data-read]");
    if (!pace || !place) return;
    seen.push([Date.now() / 1000, Number(place.dataset.read)]);
    if (seen.length < 2) return;
    var last = seen[seen.length - 1], before = seen[seen.length - 2];
    points[0].push(last[0]);
    points[1].push(Math.max(0, (last[1] - before[1]) / Math.max(last[0] - before[0], 0.001)));
    if (seen.length > 300) { seen.shift(); points[0].shift(); points[1].shift(); }
    pace.setData(points);
  }
  document.addEventListener("htmx:sseMessage", look);
  window.addEventListener("resize", function () {
    var room = document.getElementById("pace");
    if (pace && room) pace.setSize({ width: Math.max(room.clientWidth, 260), height: 190 });
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
