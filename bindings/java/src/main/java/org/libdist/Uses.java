// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;

/** What a native call uses, held until the call is over: handles, memory, options. */
final class Uses implements AutoCloseable {
    private final List<NativeObject> acquired = new ArrayList<>(4);
    private final List<Object> kept = new ArrayList<>(4);
    private final List<Runnable> deferred = new ArrayList<>(2);

    /** @param name the argument's, for who gave null; so are those below */
    long of(NativeObject object, String name) {
        return of(Objects.requireNonNull(object, name));
    }

    long of(NativeObject object) {
        long handle = object.acquire();
        acquired.add(object);
        return handle;
    }

    /** As {@link #of}, of the strategy of a run that libdist is about to hear of. */
    long ofRun(Strategy strategy, RunCall run) {
        long handle = strategy.acquire();
        strategy.life().comes(run);
        deferred.add(() -> strategy.life().leaves(run));
        return handle;
    }

    /** As {@link #of}, of the strategy of a run, which a shutdown ends. */
    long ofRun(Strategy strategy) {
        long handle = strategy.acquire();
        strategy.life().running(1);
        acquired.add(strategy);
        deferred.add(() -> strategy.life().running(-1));
        return handle;
    }

    /** As {@link #of}, of the strategy of a call that may wait for other workers: an interrupt ends it. */
    long waiting(Strategy strategy) {
        long handle = of(strategy, "strategy");
        if (strategy.hasPeers()) {
            deferred.add(new WorkerWait(handle)::end);
        }
        return handle;
    }

    /** As {@link #waiting}, where there is one: what is no call of the strategy's must not outlast it either. */
    void waitingForPeersOf(Strategy strategy) {
        if (strategy != null) {
            waiting(strategy);
        }
    }

    long ofNullable(NativeObject object) {
        return object == null ? 0 : of(object);
    }

    long[] all(Collection<? extends NativeObject> objects, String name) {
        long[] handles = new long[Objects.requireNonNull(objects, name).size()];
        int i = 0;
        for (NativeObject object : objects) {
            if (object == null) {
                throw new NullPointerException(name + " has a null at " + i);
            }
            handles[i++] = of(object);
        }
        return handles;
    }

    long[] tensor(Tensor tensor, String name) {
        kept.add(Objects.requireNonNull(tensor, name));
        return tensor.numbers();
    }

    long[] tensorOrNull(Tensor tensor) {
        return tensor == null ? null : tensor(tensor, "tensor");
    }

    /** null stays null: NULL. */
    long[] tensors(List<Tensor> tensors) {
        if (tensors == null) {
            return null;
        }
        Tensor[] copy = tensors.toArray(new Tensor[0]);
        kept.add(copy);
        return Tensor.numbers(copy);
    }

    /** As {@link #tensors}, of tensors that are written. */
    long[] written(List<Tensor> tensors) {
        if (tensors != null) {
            tensors.forEach(Tensor::checkWritable);
        }
        return tensors(tensors);
    }

    /** As {@link #written(List)}, of a list that there has to be. */
    long[] written(List<Tensor> tensors, String name) {
        return written(Objects.requireNonNull(tensors, name));
    }

    long[] written(Tensor tensor, String name) {
        Objects.requireNonNull(tensor, name).checkWritable();
        return tensor(tensor, name);
    }

    <T> T keep(T object) {
        kept.add(object);
        return object;
    }

    /** Something to do when the call is over. */
    void defer(Runnable action) {
        deferred.add(action);
    }

    @Override
    public void close() {
        for (int i = deferred.size() - 1; i >= 0; i--) {
            deferred.get(i).run();
        }
        for (NativeObject object : acquired) {
            object.release();
        }
        Reference.reachabilityFence(kept);
    }
}
