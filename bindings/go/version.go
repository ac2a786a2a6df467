// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Versions is a series of versions of data that all replicas read, such as model weights, and that can be
// replaced while they run. Any goroutine may use it.
//
// All replicas of a run, and their logical devices, see the same version until the run ends: the one that is
// latest when the first of them asks. A request counts as a run of one replica. libdist keeps a version until
// a newer one is published and no run sees it any more.
type Versions[T any] struct {
	object
	release func(content T)
}

// NewVersions returns an empty series. libdist calls release once for each version that no run sees any more,
// on the goroutine or thread that stops using it last. release must not wait for a request or a version. If
// it panics, the panic is ignored. If release is nil, the content is left to the garbage collector. The
// caller must close the series.
//
//	models, err := dist.NewVersions((*model).Close)
//	models.Publish(load("v1"))
//	...
//	content, number, err := dist.SeenVersion(r, models) // in a replica function
func NewVersions[T any](release func(content T)) (*Versions[T], error) {
	var out int64
	if err := cdist.Dist_versions_create(nil, &out); err != nil {
		return nil, fromNative(err)
	}
	v := &Versions[T]{release: release}
	v.open(out, cdist.Dist_versions_destroy, nil)
	return v, nil
}

// published is a version, which libdist knows by a token until it is released.
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

// Publish makes content the latest version and returns its number: 1, 2, 3 and so on. It may be called inside
// a replica, whose run continues with the version that it sees. If Publish fails, the caller keeps the
// content.
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

// Latest returns the number of the latest version. It returns 0 if there is none and if the series is closed.
func (v *Versions[T]) Latest() int64 {
	var u uses
	defer u.end()
	native := v.taken(&u)
	if u.err != nil {
		return 0
	}
	return cdist.Dist_versions_latest(native)
}

// longestAwait is how long a wait runs before it checks its context again.
const longestAwait = 10 * time.Millisecond

// Await waits until all versions before number have been released, or ctx ends. In the latter case, it fails
// with [ErrDeadlineExceeded] or [ErrCancelled]; the error wraps that of the context and lists the versions
// that runs still see. Await cannot be called inside a replica function, because its run may see such a
// version.
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

// Close closes the series. The latest version is released when no run sees it any more. Runs that see a
// version may be in progress.
func (v *Versions[T]) Close() error {
	if v != nil {
		v.close()
	}
	return nil
}

// SeenVersion returns the version that this replica's run sees, and its number. The content must not be used
// after the run. If no version has been published, SeenVersion fails with [ErrFailedPrecondition].
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
