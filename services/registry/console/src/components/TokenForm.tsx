/** Asks for the token of a protected registry. */
import { useEffect, useRef, useState } from "preact/hooks";
import { setToken, token } from "../api/token";

export function TokenForm({ detail }: { detail: string }) {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <section class="narrow" aria-labelledby="token-title">
      <h1 id="token-title">This registry needs a token</h1>
      {token() !== null && (
        <p role="alert" class="problem">
          {detail}
        </p>
      )}
      <form
        class="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) setToken(text.trim());
        }}
      >
        <label for="token">Token</label>
        <input
          ref={input}
          id="token"
          type="password"
          autocomplete="off"
          required
          aria-describedby="token-help"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <p id="token-help" class="muted">
          <code>tamis token</code> makes one. A token with the role reader can look, with the role writer it can also
          change alerts. It stays in this tab and is forgotten when the tab is closed.
        </p>
        <div>
          <button type="submit" class="main">
            Use token
          </button>
        </div>
      </form>
    </section>
  );
}
