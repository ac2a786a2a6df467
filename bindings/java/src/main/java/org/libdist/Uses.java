// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;

/** Holds everything that a native call uses until the call has returned: handles, memory, options. */
final class Uses implements AutoCloseable {
    private final List<NativeObject> acquired = new ArrayList<>(4);
    private final List<Object> kept = new ArrayList<>(4);
    private final List<Runnable> deferred = new ArrayList<>(2);

    /** @param name the name of the argument, for the exception if it is null; also below */
    long of(NativeObject object, String name) {
        return of(Objects.requireNonNull(object, name));
    }

    long of(NativeObject object) {
        long handle = object.acquire();
        acquired.add(object);
        return handle;
    }

    /** Same as {@link #of}, for the strategy of a run, which a shutdown cancels. */
    long ofRun(Strategy strategy) {
        long handle = strategy.acquireForRun();
        deferred.add(strategy.life()::leaves);
        return handle;
    }

    /**
     * Same as {@link #of}, for the strategy of a call that may wait for other workers. An interrupt cancels
     * the call.
     */
    long waiting(Strategy strategy) {
        long handle = of(strategy, "strategy");
        if (strategy.hasPeers()) {
            deferred.add(new WorkerWait(handle)::end);
        }
        return handle;
    }

    /**
     * Same as {@link #waiting}, if there is a strategy, for calls on other objects that must not outlast it.
     */
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

    /** Describes tensors for native code; null stays null. */
    long[] tensors(List<Tensor> tensors) {
        if (tensors == null) {
            return null;
        }
        Tensor[] copy = tensors.toArray(new Tensor[0]);
        kept.add(copy);
        return Tensor.numbers(copy);
    }

    /** Same as {@link #tensors}, for tensors that are written. */
    long[] written(List<Tensor> tensors) {
        if (tensors != null) {
            tensors.forEach(Tensor::checkWritable);
        }
        return tensors(tensors);
    }

    /** Same as {@link #written(List)}, for a list that must not be null. */
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

    /** Registers an action for the end of the call. */
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
