// Which view is shown, from the part of the address after `#`.

export type View = "now" | "changes" | "file";

export interface Route {
  view: View;
  /** The filters of the view: a session, a path, the id of a change. */
  with: URLSearchParams;
}

/** The link to a view. */
export function go(view: View, what: Record<string, string> = {}): string {
  const query = new URLSearchParams(what).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** The view that the address names. */
export function route(): Route {
  const [view = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const known: View = view === "changes" || view === "file" ? view : "now";
  return { view: known, with: new URLSearchParams(query) };
}
