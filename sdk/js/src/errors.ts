// What can go wrong. An error of the server has its message, its status, and the id that finds the request in its log.

export interface Answer {
  status: number
  requestId?: string
  retryAfterSeconds?: number
  /** The whole body, if it was JSON. */
  body: Record<string, any>
}

export class SandglassError extends Error {
  readonly status?: number
  readonly requestId?: string
  readonly body: Record<string, any>

  constructor(message: string, answer?: Answer, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.status = answer?.status
    this.requestId = answer?.requestId
    this.body = answer?.body ?? {}
  }

  /** The tool cannot be had now: the conversation can go on without it. */
  get unavailable(): boolean {
    return this.body.unavailable === true
  }
}

/** 400, 413, 422 and the like: the request is not right, and the message names the field. */
export class InvalidError extends SandglassError {}
/** 401, 403: no key or a wrong one, or something that it may not do. */
export class AuthError extends SandglassError {}
/** 404: there is none, or it is another tenant's. */
export class NotFoundError extends SandglassError {}

/** 409: something is in the way. `reason` is `state_lost` if variables are gone that were asked for. */
export class ConflictError extends SandglassError {
  get reason(): string | undefined {
    return this.body.reason
  }
  get inTheWay(): { pid: number; command: string; what: string; holds: string; remedy: string }[] {
    return this.body.inTheWay ?? []
  }
}

/** 410: the checkpoint was thinned out. */
export class GoneError extends SandglassError {
  get checkpoints(): { checkpointId: string; messageId?: string }[] {
    return this.body.checkpoints ?? []
  }
}

/** 429, 507: a limit is reached; the message names it. */
export class LimitError extends SandglassError {}
/** 502, 503, 504: the server has no room or no database now; or the sandbox, or a port of it, is not there. */
export class UnavailableError extends SandglassError {}
/** Any other status. */
export class ServerError extends SandglassError {}
/** Nothing came for too long, or a program ran for longer than it may. */
export class TimedOutError extends SandglassError {}
/** The server cannot be reached, or the connection broke. */
export class ConnectionFailedError extends SandglassError {}

/** A process ended before what was waited for. */
export class ProcessExitedError extends SandglassError {
  constructor(message: string, readonly exitCode: number) {
    super(message)
  }
}

const CLASSES: Record<number, typeof InvalidError> = {
  401: AuthError, 403: AuthError, 404: NotFoundError, 409: ConflictError, 410: GoneError, 429: LimitError,
  502: UnavailableError, 503: UnavailableError, 504: UnavailableError, 507: LimitError,
}

export function errorOf(answer: Answer): SandglassError {
  const { status, body } = answer
  const Class = CLASSES[status] ?? (status >= 400 && status < 500 ? InvalidError : ServerError)
  return new Class(typeof body.message === 'string' && body.message ? body.message : `status ${status}`, answer)
}

// The names of Connect's errors, in the last frame of a stream.
const CODES: Record<string, number> = {
  invalid_argument: 400, out_of_range: 400, failed_precondition: 400, unauthenticated: 401, permission_denied: 403, not_found: 404,
  already_exists: 409, aborted: 409, resource_exhausted: 429, unimplemented: 501, unavailable: 503,
}

export function errorOfStream(error: { code?: string; message?: string }, requestId?: string): SandglassError {
  const { code = '', message = code } = error
  if (code === 'deadline_exceeded' || code === 'canceled') return new TimedOutError(message)
  return errorOf({ status: CODES[code] ?? 500, requestId, body: { message } })
}
