// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// canceller cancels libdist calls when a context ends. It is nil for a context that never ends.
type canceller struct {
	native int64
	stop   func() bool   // nil: it has asked already
	asked  chan struct{} // closed when it has
	spent  bool          // askFor has asked
}

// cancelWith watches a context until end is called.
func cancelWith(ctx context.Context) (*canceller, error) {
	return cancelWhere(ctx, func() bool { return true })
}

// cancelWhere is cancelWith, but cancels nothing if asks returns false when the context ends.
func cancelWhere(ctx context.Context, asks func() bool) (*canceller, error) {
	if ctx == nil || ctx.Done() == nil {
		return nil, nil
	}
	native, err := takeCancel()
	if err != nil {
		return nil, err
	}
	c := &canceller{native: native, asked: make(chan struct{})}
	ask := func() {
		defer close(c.asked)
		if asks() {
			_ = cdist.Dist_cancel_signal(c.native, why(ctx).Error()) // fails only for arguments that cannot occur here
		}
	}
	if ctx.Err() != nil { // a call that starts with it fails at once
		ask()
	} else {
		c.stop = context.AfterFunc(ctx, ask)
	}
	return c, nil
}

// cancelAtWill returns a canceller that cancels only when askFor is called.
func cancelAtWill() (*canceller, error) {
	native, err := takeCancel()
	if err != nil {
		return nil, err
	}
	return &canceller{native: native, stop: notAsked}, nil
}

// notAsked replaces stop if there is no context to watch.
func notAsked() bool { return true }

// askFor cancels for another reason than the context. It must not be called concurrently with end.
func (c *canceller) askFor(reason string) {
	c.spent = true
	_ = cdist.Dist_cancel_signal(c.native, reason)
}

// spare holds cancel objects that have not been signalled. Creating one takes system calls, which cost more
// than a short run.
var spare = make(chan int64, 64)

func takeCancel() (native int64, err error) {
	select {
	case native = <-spare:
		return native, nil
	default:
		err = fromNative(cdist.Dist_cancel_create(nil, &native))
		return native, err
	}
}

// handle returns 0, which stands for NULL, for nil.
func (c *canceller) handle() int64 {
	if c == nil {
		return 0
	}
	return c.native
}

// end stops the watch when the calls that it could cancel have returned. A signal that has been sent cannot
// be undone.
func (c *canceller) end() {
	if c == nil {
		return
	}
	if c.stop != nil && c.stop() {
		if !c.spent {
			select {
			case spare <- c.native:
				return
			default:
			}
		}
	} else {
		<-c.asked
	}
	cdist.Dist_cancel_destroy(c.native)
}

// endInside is end for the case that some of these calls have not returned.
func (c *canceller) endInside() {
	if c == nil {
		return
	}
	if c.stop == nil || !c.stop() {
		<-c.asked
	}
	cdist.Dist_cancel_destroy(c.native)
}

// timedCall is a call that a context cancels. The context's deadline is passed as the timeout of the call, so
// that the error describes what the call waited for.
type timedCall struct {
	ctx    context.Context
	cancel *canceller // nil: nothing ends it
}

// newTimedCall watches a context until its cancel object ends.
func newTimedCall(ctx context.Context) (*timedCall, error) {
	call := &timedCall{ctx: contextOr(ctx)}
	if over := call.ctx.Err(); over != nil || call.late() {
		report := endedBefore(call.ctx, "the context ended before the call began")
		if over == nil { // it will be notified, or has been by now
			report.Code, report.cause = ErrDeadlineExceeded, context.DeadlineExceeded
		}
		return nil, report
	}
	var err error
	call.cancel, err = cancelWhere(call.ctx, func() bool { return !call.late() })
	return call, err
}

// late reports whether the deadline has passed.
func (c *timedCall) late() bool {
	deadline, dated := c.ctx.Deadline()
	return dated && !time.Now().Before(deadline)
}

// timeout returns the time until the deadline in libdist's form, or none if there is no deadline.
func (c *timedCall) timeout(none int64) int64 {
	if deadline, dated := c.ctx.Deadline(); dated {
		return int64(max(time.Until(deadline), 1))
	}
	return none
}

// own returns the error of the call, with the context's error if the context has ended the call.
func (c *timedCall) own(err error) error {
	err = fromNative(err)
	report, ok := err.(*Error)
	if !ok || report.Code != ErrDeadlineExceeded || !c.late() {
		return byContextOf(c.ctx, err, "the context ended the call")
	}
	report.cause = context.DeadlineExceeded
	if c.ctx.Err() != nil {
		report.cause = why(c.ctx)
	}
	return report
}

// callers are the blocking calls of an object, which end when the object does.
type callers struct {
	mu    sync.Mutex
	calls map[*canceller]struct{}
	over  string // why they end; "": they do not
}

// end cancels all blocking calls, and all later ones.
func (c *callers) end(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = reason
	for call := range c.calls {
		call.askFor(reason)
	}
}

func (c *callers) enter(call *canceller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[*canceller]struct{}{}
	}
	c.calls[call] = struct{}{}
	if c.over != "" {
		call.askFor(c.over)
	}
}

func (c *callers) leave(call *canceller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call)
}

// wait makes a call that ctx and end cancel. c may be nil.
func (c *callers) wait(ctx context.Context, do func(call *timedCall) error) error {
	call, err := newTimedCall(ctx)
	if err == nil && call.cancel == nil && c != nil {
		call.cancel, err = cancelAtWill()
	}
	if err != nil {
		return err
	}
	defer call.cancel.end()
	if c != nil {
		c.enter(call.cancel)
		defer c.leave(call.cancel)
	}
	return call.own(do(call))
}

// contextOr returns ctx, or a context that never ends if ctx is nil.
func contextOr(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// ended is the reason for which a context has ended: its own error, and the program's cause.
type ended struct{ err, cause error }

func why(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return &ended{ctx.Err(), cause}
	}
	return ctx.Err()
}

func (e *ended) Error() string { return e.err.Error() + ": " + e.cause.Error() }

func (e *ended) Unwrap() []error { return []error{e.err, e.cause} }

// byContext returns err as it should be if the end of a context has ended the call: with the code for a
// deadline if it was one, and with the context's error and its cause.
func byContext(ctx context.Context, err error) error {
	return byContextOf(ctx, err, "the context ended the run")
}

// byContextOf is byContext with a given message.
func byContextOf(ctx context.Context, err error, words string) error {
	if err == nil || ctx == nil || ctx.Err() == nil || !errors.Is(err, ErrCancelled) {
		return err
	}
	report := endedBefore(ctx, words)
	if libdist, ok := err.(*Error); ok {
		if libdist.cause != nil {
			return err // it says so already
		}
		code, cause := report.Code, report.cause
		*report = *libdist
		report.Code, report.cause, report.told = code, cause, ""
		return report
	}
	report.cause = &ended{report.cause, err}
	return report
}

// notBegun returns the error of a run whose context had ended before.
func notBegun(ctx context.Context) *Error {
	return endedBefore(ctx, "the context ended before the run began")
}

// endedBefore returns the error of a call whose context has ended, with a given message.
func endedBefore(ctx context.Context, words string) *Error {
	code := ErrCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = ErrDeadlineExceeded
	}
	report := newError(code, "%s", words)
	report.cause = why(ctx)
	return report
}
