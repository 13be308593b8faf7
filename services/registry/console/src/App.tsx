/** The frame of every page: skip link, navigation, connection, and the page of the address. */
import { useEffect, useRef, useState } from "preact/hooks";
import { onToken, refusal, setToken, token } from "./api/token";
import { Connection } from "./components/Connection";
import { TokenForm } from "./components/TokenForm";
import { Alert } from "./pages/Alert";
import { DeadLetters } from "./pages/DeadLetters";
import { Fleet } from "./pages/Fleet";
import { NewAlert } from "./pages/NewAlert";
import { NotFound } from "./pages/NotFound";
import { Silences } from "./pages/Silences";
import { Stream } from "./pages/Stream";
import { links, parseRoute, type Route } from "./text/route";

const NAVIGATION = [
  { text: "Fleet", link: links.fleet, pages: ["fleet", "alert", "stream"] },
  { text: "New alert", link: links.new, pages: ["new"] },
  { text: "Silences", link: links.silences, pages: ["silences"] },
  { text: "Dead letters", link: links.deadLetters, pages: ["dead-letters"] },
];

export function App() {
  const [fragment, setFragment] = useState(location.hash);
  const [, setTurn] = useState(0);
  const main = useRef<HTMLElement>(null);
  const route = parseRoute(fragment);
  useEffect(() => {
    const changed = () => setFragment(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => onToken(() => setTurn((turn) => turn + 1)), []);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${title(route)} · Tamis`;
    // A screen reader begins at the heading of the new page; the first page begins at its top.
    if (!first.current) {
      scrollTo(0, 0);
      main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [fragment]);
  const needed = refusal();
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="frame">
        <a class="brand" href={links.fleet}>
          Tamis
        </a>
        <nav aria-label="Pages">
          <ul>
            {NAVIGATION.map(({ text, link, pages }) => (
              <li key={link}>
                <a href={link} aria-current={pages.includes(route.page) ? "page" : undefined}>
                  {text}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Connection />
        {token() !== null && (
          <button type="button" class="quiet" onClick={() => setToken(null)}>
            Forget token
          </button>
        )}
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        {needed === null ? <Page key={fragment} route={route} /> : <TokenForm detail={needed} />}
      </main>
    </>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "fleet":
      return <Fleet />;
    case "alert":
      return <Alert name={route.name} />;
    case "stream":
      return <Stream name={route.name} />;
    case "new":
      return <NewAlert replace={route.replace} />;
    case "silences":
      return <Silences alert={route.alert} keyText={route.key} />;
    case "dead-letters":
      return <DeadLetters />;
    default:
      return <NotFound path={route.path} />;
  }
}

function title(route: Route): string {
  switch (route.page) {
    case "fleet":
      return "Fleet";
    case "alert":
      return `Alert ${route.name}`;
    case "stream":
      return `Stream ${route.name}`;
    case "new":
      return route.replace === null ? "New alert" : `Replace ${route.replace}`;
    case "silences":
      return "Silences";
    case "dead-letters":
      return "Dead letters";
    default:
      return "Not found";
  }
}
