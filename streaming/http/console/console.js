// The console: the hub as its events tell it. Text goes into the page as text, never as markup.

const CONFLICTS_MAX = 20;
const EPOCHS_MAX = 50;
const WARN_S = 10;
const BAD_S = 60;

const byId = (id) => document.getElementById(id);
const waiting = [];
let isPaused = false;
let previous = null;

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function row(...cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

const cell = (text, kind = "") => element("td", text, kind ? { class: kind } : {});
const head = (text, scope) => element("th", text, { scope });

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 3600) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)} h` : `${Math.round(value / 86400)} d`;
}

const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
const severity = (lag) => (lag === null ? "" : lag >= BAD_S ? "bad" : lag >= WARN_S ? "warn" : "good");

function setText(id, text) {
  const at = byId(id);
  if (at.textContent !== text) at.textContent = text;
}

// -- the state -------------------------------------------------------------------------------------

function showState(state) {
  document.title = `Slackwater: ${state.hub}`;
  setText("hub", state.hub);
  setText("epoch", count(state.hub_epoch));
  setText("conflict-count", count(state.conflicts.total));
  setText("pending", count(state.pending.pending + state.pending.waiting));
  setText("unread", count(Object.values(state.unread).reduce((sum, one) => sum + one, 0)));
  showLevel(state);
  showRates(state);
  showMatrix(state.agreements);
  byId("agreements").tBodies[0].replaceChildren(...state.agreements.map(agreementRow));
  byId("replicas").tBodies[0].replaceChildren(...state.replicas.map(replicaRow));
  showQuarantine(state.quarantine.by_reason);
}

function showLevel(state) {
  const behind = state.agreements.filter((one) => !one.level).map((one) => one.consumer);
  const isReady = state.readiness.ready;
  const worst = Math.max(0, ...state.agreements.map((one) => one.lag_s ?? 0));
  const badge = byId("level");
  badge.className = `badge ${!isReady ? "bad" : behind.length ? severity(worst) : "good"}`;
  setText("level", !isReady ? "not ready" : behind.length ? `not level: ${behind.join(", ")}` : "level");
  const stopped = [...state.agreements, ...state.replicas].filter((one) => one.remedy);
  const reasons = [
    ...state.readiness.reasons,
    ...stopped.map((one) => `${one.name}: ${one.state}; ${one.remedy}`),
    ...state.unheard,
    ...uncarriedReasons(state.uncarried),
  ];
  byId("reasons").replaceChildren(...reasons.map((text) => element("li", text)));
  byId("reasons").hidden = reasons.length === 0;
}

function uncarriedReasons(rows) {
  const named = Object.entries(rows).map(([replica, of]) => `${replica} alone has ${of === 1 ? "1 row" : `${of} rows`}`);
  return named.map((text) => `${text} that nobody else can take; slackwater conflicts list --kind uncarried`);
}

function showRates(state) {
  const now = performance.now() / 1000;
  const judged = { accepted: state.totals.accepted ?? 0, rejected: state.totals.rejected ?? 0 };
  if (previous && now > previous.now) {
    const rate = (name) => Math.max(0, judged[name] - previous[name]) / (now - previous.now);
    setText("changes-rate", (rate("accepted") + rate("rejected")).toFixed(1));
    setText("rejected-rate", rate("rejected").toFixed(1));
  }
  previous = { now, ...judged };
}

function showMatrix(agreements) {
  const origins = [...new Set(agreements.flatMap((one) => one.origins.map((of) => of.origin)))].sort();
  const table = byId("lag");
  table.tHead.replaceChildren(row(head("Consumer", "col"), ...origins.map((one) => head(one, "col"))));
  table.tBodies[0].replaceChildren(
    ...agreements.map((agreement) => {
      const known = new Map(agreement.origins.map((of) => [of.origin, of]));
      return row(head(agreement.consumer, "row"), ...origins.map((one) => lagCell(known.get(one))));
    }),
  );
}

function lagCell(of) {
  if (!of) return cell("–");
  if (of.changes === 0) return cell("0", "good");
  const unsent = of.unsent ? `, ${count(of.unsent)} not sent` : "";
  return cell(`${seconds(of.lag_s)}, ${count(of.changes)}${unsent}`, severity(of.lag_s));
}

function agreementRow(one) {
  const resync = one.resync;
  const percent = resync && resync.percent !== null ? `${resync.percent.toFixed(2)} %` : "";
  const isBehind = one.lag_epochs > 0 && one.time_to_level_s !== null;
  const foretold = one.level ? "level" : isBehind ? seconds(one.time_to_level_s) : "unknown";
  return row(
    head(one.consumer, "row"),
    cell(one.state, one.remedy ? "bad" : ""),
    cell(one.level ? "level" : one.lag_s ? seconds(one.lag_s) : "not level", one.level ? "good" : severity(one.lag_s)),
    cell(count(one.lag_changes)),
    cell(foretold),
    cell(resync ? [percent, resync.waits_text].filter(Boolean).join(", ") : "none"),
    comparisonCell(one.comparison, one.not_compared),
  );
}

function comparisonCell(of, why) {
  if (why) return cell(`not compared: ${why}`, "bad");
  if (!of) return cell("never");
  const differ = of.differing ? `${of.more_differ ? "at least " : ""}${count(of.differing)} differ` : "equal";
  return cell(`${differ}, ${seconds(of.age_s)} ago`, of.differing ? "bad" : "good");
}

function replicaRow(one) {
  const quarantined = Object.values(one.quarantined).reduce((sum, of) => sum + of, 0);
  return row(
    head(one.name ?? String(one.rid), "row"),
    cell(one.state, one.remedy ? "bad" : ""),
    cell(one.seen_age_s === null ? "never" : `${seconds(one.seen_age_s)} ago`),
    cell(count(one.changes.accepted ?? 0)),
    cell(count(one.changes.rejected ?? 0)),
    cell(count(one.pending + one.waiting)),
    cell(count(quarantined)),
  );
}

function showQuarantine(byReason) {
  const found = Object.entries(byReason).map(([reason, kept]) => element("li", `${reason}: ${count(kept)}`));
  byId("quarantine").replaceChildren(...(found.length ? found : [element("li", "empty", { class: "none" })]));
}

// -- what happened ---------------------------------------------------------------------------------

function showEpoch(event) {
  const { accepted = 0, rejected = 0, quarantined = 0 } = event.counts;
  const time = event.at.slice(11, 19);
  const text = `${event.hub_epoch} at ${time}: ${accepted} accepted, ${rejected} rejected, ${quarantined} quarantined`;
  byId("epochs").prepend(element("li", text));
  while (byId("epochs").children.length > EPOCHS_MAX) byId("epochs").lastChild.remove();
  byId("no-epochs").hidden = true;
  setText("epoch", count(event.hub_epoch));
  for (const conflict of event.conflicts.first) showConflict(conflict);
}

function showConflict(conflict) {
  const list = byId("conflicts");
  if ([...list.children].some((one) => one.dataset.id === conflict.id)) return;
  list.prepend(conflictItem(conflict));
  while (list.children.length > CONFLICTS_MAX) list.lastChild.remove();
  byId("no-conflicts").hidden = true;
}

function conflictItem(conflict) {
  const item = element("li", "", { "data-id": conflict.id });
  item.append(
    element("h3", `${conflict.table} ${conflict.key ?? ""}`),
    element("p", `${moment(conflict)}${conflict.kind}, hub epoch ${conflict.hub_epoch}, ${conflict.resolution}`),
    conflict.kind === "refused" ? refusal(conflict) : sides(conflict),
  );
  return item;
}

function moment(conflict) {
  const at = conflict.at ?? conflict.time;
  return at ? `${at.slice(0, 19).replace("T", " ")}Z, ` : "";
}

function refusal(conflict) {
  const table = document.createElement("table");
  const pairs = [
    ["Refused by", conflict.loser ?? String(conflict.loser_rid)],
    ["Code", conflict.code ?? ""],
    ["Its database said", conflict.text ?? ""],
    ["Attempts", String(conflict.attempts ?? 1)],
  ];
  table.createTBody().append(...pairs.map(([name, text]) => row(head(name, "row"), cell(text))));
  return table;
}

function sides(conflict) {
  const table = document.createElement("table");
  const [loser, winner] = [image(conflict, "after"), image(conflict, "winner_image")];
  const columns = [...new Set([...Object.keys(loser ?? {}), ...Object.keys(winner ?? {})])];
  const title = (word, name) => head(name ? `${word}: ${name}` : word, "col");
  table.createTHead().append(
    row(head("Column", "col"), title("Lost", conflict.loser), title("Won", conflict.winner)),
  );
  table.createTBody().append(
    ...columns.map((name) => {
      const differs = JSON.stringify(loser?.[name]) !== JSON.stringify(winner?.[name]);
      return row(head(name, "row"), valueCell(loser, name, differs), valueCell(winner, name, differs));
    }),
  );
  if (columns.length === 0) table.tBodies[0].append(row(head("row", "row"), absent(loser), absent(winner)));
  return table;
}

function image(conflict, name) {
  if (conflict.omitted?.includes(name)) return null;
  return conflict[name] ? JSON.parse(conflict[name]) : null;
}

const absent = (side) => element("td", side ? "" : "no row", { class: "none" });

function valueCell(side, name, differs) {
  if (!side) return absent(side);
  const value = side[name];
  const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
  if (!differs) return cell(text);
  const made = document.createElement("td");
  made.append(element("mark", text));
  return made;
}

// -- events ----------------------------------------------------------------------------------------

function take(show, event) {
  if (isPaused) waiting.push([show, event]);
  else show(event);
}

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  setText("pause", isPaused ? "Resume" : "Pause");
  if (!isPaused) for (const [show, event] of waiting.splice(0)) show(event);
});

async function showRecorded() {
  const answer = await fetch("conflicts");
  if (!answer.ok) return;
  for (const conflict of await answer.json()) showConflict(conflict);
}

const events = new EventSource("events");
events.addEventListener("epoch", (event) => take(showEpoch, JSON.parse(event.data)));
events.addEventListener("state", (event) => take(showState, JSON.parse(event.data)));
events.addEventListener("open", showRecorded, { once: true });
events.addEventListener("error", () => {
  byId("level").className = "badge bad";
  setText("level", "the hub does not answer");
  if (events.readyState === EventSource.CLOSED) askForToken();
});

// -- token -----------------------------------------------------------------------------------------

async function askForToken() {
  const answer = await fetch("access");
  if (answer.status !== 401) return;
  setText("level", "the hub asks for its token");
  byId("access").hidden = false;
  byId("token").focus();
}

byId("access").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token").value;
  const answer = await fetch("access", { headers: { authorization: `Bearer ${token}` } });
  if (answer.ok) location.reload();
  else setText("refused", "This is not the token.");
});
