// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Versions is a series of something that all replicas read, weights for example, and that is replaced while they run. Any
// goroutine may use it.
//
// All replicas of a run see one version, the latest when the first of them asks, to the end of the run; so do its logical
// devices. A request is a run of one. A version stays until it is neither the latest nor seen by a run.
type Versions[T any] struct {
	object
	release func(content T)
}

// NewVersions makes a series without a version. release ends a version that nobody sees any more: it is called once for
// each, on the goroutine or the thread that lets go of it last, and waits for no request or version; its panic is dropped.
// nil: nothing is done, and the content is the garbage collector's.
//
//	models, err := dist.NewVersions((*model).Close)
//	models.Publish(load("v1"))
//	...
//	content, number, err := dist.SeenVersion(r, models) // in a function of a replica's
func NewVersions[T any](release func(content T)) (*Versions[T], error) {
	var out int64
	if err := cdist.Dist_versions_create(nil, &out); err != nil {
		return nil, fromNative(err)
	}
	v := &Versions[T]{release: release}
	v.open(out, cdist.Dist_versions_destroy, nil)
	return v, nil
}

// published is a version, whose token libdist has until it is released.
type published[T any] struct {
	content T
	ends    func(content T)
}

func (p *published[T]) release() {
	if p.ends != nil {
		_ = onNative(-1, func() error {
			p.ends(p.content)
			return nil
		})
	}
}

func (v *Versions[T]) taken(u *uses) int64 {
	if v == nil {
		return 0
	}
	return u.take(&v.object, "series of versions")
}

// Publish makes content the latest version. Its number is 1, 2, 3 and so on. Also inside a replica, whose run goes on with the
// version that it sees. Where it fails, the content is still the caller's.
func (v *Versions[T]) Publish(content T) (number int64, err error) {
	var u uses
	defer u.end()
	native := v.taken(&u)
	if u.err != nil {
		return 0, u.err
	}
	if v == nil {
		return 0, newError(ErrInvalidArgument, "the series of versions is nil: NewVersions makes one")
	}
	token := register(&published[T]{content, v.release})
	if err := cdist.Dist_versions_publish(native, token, &number); err != nil {
		forget(token)
		return 0, fromNative(err)
	}
	return number, nil
}

// Latest is the number of the latest version; 0: there is none, or the series is closed.
func (v *Versions[T]) Latest() int64 {
	var u uses
	defer u.end()
	native := v.taken(&u)
	if u.err != nil {
		return 0
	}
	return cdist.Dist_versions_latest(native)
}

// longestAwait is how long a wait that a context may end looks away from that.
const longestAwait = 10 * time.Millisecond

// Await waits until all versions before `number` have been released, and at most until the end of ctx: the error then has
// ErrDeadlineExceeded, or ErrCancelled, with the context's, and says which versions runs still see. Outside the replicas'
// functions: a run may see such a version.
func (v *Versions[T]) Await(ctx context.Context, number int64) error {
	var u uses
	defer u.end()
	native := v.taken(&u)
	if u.err != nil {
		return u.err
	}
	ctx = contextOr(ctx)
	if ctx.Done() == nil {
		return fromNative(cdist.Dist_versions_await(native, number, int64(NoTimeout)))
	}
	for {
		wait := longestAwait
		if over(ctx) {
			wait = 0
		} else if deadline, dated := ctx.Deadline(); dated {
			wait = min(wait, max(time.Until(deadline), 0))
		}
		err := fromNative(cdist.Dist_versions_await(native, number, int64(wait)))
		report, ok := err.(*Error)
		if !ok || report.Code != ErrDeadlineExceeded {
			return err
		}
		if wait > 0 {
			continue
		}
		if report.cause = context.DeadlineExceeded; ctx.Err() != nil {
			report.Code, report.cause = codeOf(ctx.Err()), why(ctx)
		}
		return report
	}
}

// Close gives up the series: the latest version is released when no run sees it any more. Runs that see one may be under way.
func (v *Versions[T]) Close() error {
	if v != nil {
		v.close()
	}
	return nil
}

// SeenVersion is the version that this replica's run sees, and its number; the content is not to be used after the run. Where
// nothing has been published, it is ErrFailedPrecondition.
func SeenVersion[T any](r *Replica, v *Versions[T]) (content T, number int64, err error) {
	var u uses
	defer u.end()
	replica, native := u.replica(r), v.taken(&u)
	if u.err != nil {
		return content, 0, u.err
	}
	var token int64
	if err := r.told(cdist.Dist_replica_version(replica, native, &token, &number)); err != nil {
		return content, 0, err
	}
	return registered[*published[T]](token).content, number, nil
}
