// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// canceller asks libdist to end what was begun with it when a context is over; nil for one that never is.
type canceller struct {
	native int64
	stop   func() bool   // nil: it has asked already
	asked  chan struct{} // closed when it has
	spent  bool          // askFor has asked
}

// cancelWith watches a context, until end.
func cancelWith(ctx context.Context) (*canceller, error) {
	return cancelWhere(ctx, func() bool { return true })
}

// cancelWhere is cancelWith, which asks nothing where `asks` is false at the end of the context.
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
			_ = cdist.Dist_cancel_signal(c.native, why(ctx).Error()) // refuses only what no program can give here
		}
	}
	if ctx.Err() != nil { // what begins with it ends at once
		ask()
	} else {
		c.stop = context.AfterFunc(ctx, ask)
	}
	return c, nil
}

// cancelAtWill asks where askFor is called, and nowhere else.
func cancelAtWill() (*canceller, error) {
	native, err := takeCancel()
	if err != nil {
		return nil, err
	}
	return &canceller{native: native, stop: notAsked}, nil
}

// notAsked is stop where there is no context to stop.
func notAsked() bool { return true }

// askFor asks for a reason of its own; not at the same time as end.
func (c *canceller) askFor(reason string) {
	c.spent = true
	_ = cdist.Dist_cancel_signal(c.native, reason)
}

// spare are cancel objects that have asked for nothing: to make one costs system calls, more than a short run.
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

// handle is 0, which is NULL, for nil.
func (c *canceller) handle() int64 {
	if c == nil {
		return 0
	}
	return c.native
}

// end gives the watch up, when what was begun with it is over; what it has asked for, it has asked for.
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

// endInside is end where a part of what was begun is not over.
func (c *canceller) endInside() {
	if c == nil {
		return
	}
	if c.stop == nil || !c.stop() {
		<-c.asked
	}
	cdist.Dist_cancel_destroy(c.native)
}

// timedCall is a call that ends with its context. A deadline is the call's own time-out: then the error says what was
// waited for.
type timedCall struct {
	ctx    context.Context
	cancel *canceller // nil: nothing ends it
}

// newTimedCall watches a context until the end of its cancel.
func newTimedCall(ctx context.Context) (*timedCall, error) {
	call := &timedCall{ctx: contextOr(ctx)}
	if over := call.ctx.Err(); over != nil || call.late() {
		report := endedBefore(call.ctx, "the context ended before the call began")
		if over == nil { // it will come to know, maybe by now
			report.Code, report.cause = ErrDeadlineExceeded, context.DeadlineExceeded
		}
		return nil, report
	}
	var err error
	call.cancel, err = cancelWhere(call.ctx, func() bool { return !call.late() })
	return call, err
}

// late says whether the deadline has passed.
func (c *timedCall) late() bool {
	deadline, dated := c.ctx.Deadline()
	return dated && !time.Now().Before(deadline)
}

// timeout is what is left until the deadline, as libdist has it; without one it is `none`.
func (c *timedCall) timeout(none int64) int64 {
	if deadline, dated := c.ctx.Deadline(); dated {
		return int64(max(time.Until(deadline), 1))
	}
	return none
}

// own is the error of the call, with the context's where that has ended it.
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

// callers are calls that wait, and that end with what they are of.
type callers struct {
	mu    sync.Mutex
	calls map[*canceller]struct{}
	over  string // why they end; "": they do not
}

// end ends those that wait, and all that come.
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

// wait does a call that ends with its context, and by end; c may be nil.
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

// contextOr is ctx; nil is one that never ends.
func contextOr(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// ended is why a context is over: what it says itself, and the program's own cause.
type ended struct{ err, cause error }

func why(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return &ended{ctx.Err(), cause}
	}
	return ctx.Err()
}

func (e *ended) Error() string { return e.err.Error() + ": " + e.cause.Error() }

func (e *ended) Unwrap() []error { return []error{e.err, e.cause} }

// byContext is err as it is where a context that is over has ended the call: a deadline where that was one, with the
// context's error and its cause.
func byContext(ctx context.Context, err error) error {
	return byContextOf(ctx, err, "the context ended the run")
}

// byContextOf is byContext, which says so in these words.
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

// notBegun is the error of a run whose context was over before.
func notBegun(ctx context.Context) *Error {
	return endedBefore(ctx, "the context ended before the run began")
}

// endedBefore is the error of a call whose context is over, in these words.
func endedBefore(ctx context.Context, words string) *Error {
	code := ErrCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = ErrDeadlineExceeded
	}
	report := newError(code, "%s", words)
	report.cause = why(ctx)
	return report
}
