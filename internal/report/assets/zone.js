"use strict";
// Says moments in the reader's zone, with UTC beside: of all time elements below one. Where it does not run, UTC stays.
const inZone = below => {
  const two = n => String(n).padStart(2, "0");
  const day = (...of) => of[0] + "-" + two(of[1] + 1) + "-" + two(of[2]), clock = (...of) => of.map(two).join(":");
  for (const e of below.querySelectorAll("time[datetime]")) {
    const at = new Date(e.dateTime);
    if (isNaN(at) || !at.getTimezoneOffset()) continue;
    const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(at).find(p => p.type === "timeZoneName").value;
    const here = day(at.getFullYear(), at.getMonth(), at.getDate());
    const there = day(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate());
    const utc = clock(at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()) + " UTC";
    const local = clock(at.getHours(), at.getMinutes(), at.getSeconds());
    e.textContent = e.className ? local + " (" + utc + ")"
      : here + " " + local + " " + zone + " (" + (here === there ? "" : there + " ") + utc + ")";
  }
  const said = document.getElementById("zone");
  if (said && new Date().getTimezoneOffset()) said.textContent = "Times are of " + Intl.DateTimeFormat().resolvedOptions().timeZone + ", UTC beside.";
};
inZone(document);
