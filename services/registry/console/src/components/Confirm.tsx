/** A dialog that asks before a change. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Properties {
  title: string;
  action: string;
  /** The change destroys something. */
  danger?: boolean;
  children: ComponentChildren;
  onConfirm: () => void;
  onCancel: () => void;
}

export function Confirm({ title, action, danger = true, children, onConfirm, onCancel }: Properties) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onCancel}>
      <h2 id={id}>{title}</h2>
      {children}
      <div class="actions">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" class={danger ? "danger" : "main"} onClick={onConfirm}>
          {action}
        </button>
      </div>
    </dialog>
  );
}
