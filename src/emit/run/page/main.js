// main: puts the parts into the page, what is seen first, first.
putHeader();
putFindings();
putTiles();
putSteps();
putTimeline();
putFlame();
putCharts();
putTables();
putEnvironment();
putOwn();
putTheme();
putNavigation();
performance.mark("tare-ready");
document.documentElement.dataset.ready = String(Math.round(performance.now()));
