/**
 * The SQL editor: highlighting, completion, and mistakes at their place.
 *
 * It is in a shadow root. There CodeMirror adopts its style sheets by script, which the content security policy
 * allows. Outside of a shadow root it would add style elements, which the policy refuses.
 */
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, tooltips } from "@codemirror/view";
import type { Ref } from "preact";
import { useEffect, useImperativeHandle, useRef } from "preact/hooks";
import type { Mistake, Names } from "../api/documents";
import { completionOf, language } from "./language";
import { diagnostics, offset } from "./mistakes";
import { theme } from "./theme";

export interface EditorHandle {
  /** Move to the place of a mistake. */
  go: (mistake: Mistake) => void;
  /** Replace the whole text. */
  replace: (text: string) => void;
}

interface Properties {
  text: string;
  mistakes: Mistake[];
  names: Names | undefined;
  onChange: (text: string) => void;
  ref: Ref<EditorHandle>;
}

export function SqlEditor({ text, mistakes, names, onChange, ref }: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const known = useRef(names);
  known.current = names;
  useEffect(() => {
    const root = host.current?.shadowRoot ?? host.current?.attachShadow({ mode: "open" });
    if (!root) return undefined;
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          drawSelection(),
          bracketMatching(),
          tooltips({ position: "absolute" }),
          autocompletion({ override: [completionOf(() => known.current)] }),
          keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
          language,
          theme,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "SQL", "aria-multiline": "true" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);
  useEffect(() => {
    const current = view.current;
    if (current) current.dispatch(setDiagnostics(current.state, diagnostics(current.state.doc, mistakes)));
  }, [mistakes]);
  useImperativeHandle(
    ref,
    () => ({
      go: (mistake) => {
        const current = view.current;
        if (!current) return;
        current.dispatch({ selection: { anchor: offset(current.state.doc, mistake) }, scrollIntoView: true });
        current.focus();
      },
      replace: (now) => {
        const current = view.current;
        if (!current) return;
        current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: now } });
        current.focus();
      },
    }),
    [],
  );
  return <div ref={host} class="editor" />;
}
