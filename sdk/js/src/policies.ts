// Policies for what leaves a sandbox: docs/egress.md. They are plain objects, so they can be written by hand, too.
import type { Policy, Strings } from './types.js'

const ALL = '0.0.0.0/0'

export const policies = {
  /** Nothing. */
  block: (): Policy => 'block',
  /** Everything but internal addresses. */
  open: (): Policy => 'open',
  /** Nothing but these names, addresses and networks. */
  only: (...entries: string[]): Policy => ({ allowOut: entries, denyOut: [ALL] }),
  /** Everything but these. Names only where a context is made: `setNetwork` takes addresses and networks. */
  allExcept: (...entries: string[]): Policy => ({ denyOut: entries }),
  /**
   * The guard sets headers in requests to a host, which is allowed from then on. A value may mention a secret,
   * `${e2b.secrets.NAME}`: the code inside never sees it.
   */
  withHeaders(policy: Policy, host: string, headers: Strings): Policy {
    const { allowOut, denyOut, ...rest } = fieldsOf(policy)
    const allowed = denyOut?.includes(ALL) && !allowOut?.includes(host) ? [...(allowOut ?? []), host] : allowOut
    const rules = { ...rest.rules, [host]: [{ transform: { headers } }] }
    return { ...rest, ...(allowed && { allowOut: allowed }), ...(denyOut && { denyOut }), rules }
  },
}

/** A policy in the form that `PUT /sandboxes/{id}/network` and E2B's create have. */
export function fieldsOf(policy: Policy): Exclude<Policy, string> {
  return policy === 'block' ? { denyOut: [ALL] } : policy === 'open' ? { allowOut: [ALL] } : policy
}
