// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What a native call uses, held until the call is over: handles, memory, options. */
final class Uses implements AutoCloseable {
    private final List<NativeObject> acquired = new ArrayList<>(4);
    private final List<Object> kept = new ArrayList<>(4);
    private final List<Runnable> deferred = new ArrayList<>(2);

    long of(NativeObject object) {
        long handle = object.acquire();
        acquired.add(object);
        return handle;
    }

    long ofNullable(NativeObject object) {
        return object == null ? 0 : of(object);
    }

    long[] all(Collection<? extends NativeObject> objects) {
        long[] handles = new long[objects.size()];
        int i = 0;
        for (NativeObject object : objects) {
            handles[i++] = of(object);
        }
        return handles;
    }

    long[] tensor(Tensor tensor) {
        kept.add(tensor);
        return tensor.numbers();
    }

    long[] tensorOrNull(Tensor tensor) {
        return tensor == null ? null : tensor(tensor);
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

    long[] written(Tensor tensor) {
        tensor.checkWritable();
        return tensor(tensor);
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
