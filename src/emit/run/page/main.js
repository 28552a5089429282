// main: renders the parts of the page, those at the top first.
putHeader();
putFindings();
putTiles();
putSteps();
putStacks();
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
