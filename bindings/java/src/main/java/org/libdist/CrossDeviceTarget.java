// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;

/** Calls the functions of a {@link CrossDeviceFunctions} with tensors that are valid during the call. */
final class CrossDeviceTarget extends Target {
    private final CrossDeviceFunctions functions;

    private CrossDeviceTarget(CrossDeviceFunctions functions) {
        this.functions = functions;
    }

    static Target of(CrossDeviceFunctions functions) {
        return new CrossDeviceTarget(functions);
    }

    static boolean hasOwnBroadcast(CrossDeviceFunctions functions) {
        return overrides(functions, "broadcast", Elements.class, List.class);
    }

    static boolean hasOwnGather(CrossDeviceFunctions functions) {
        return overrides(functions, "gather", List.class, int.class, Elements.class);
    }

    private static boolean overrides(CrossDeviceFunctions functions, String name, Class<?>... parameters) {
        try {
            return functions.getClass().getMethod(name, parameters).getDeclaringClass()
                    != CrossDeviceFunctions.class;
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Tensors that are invalidated together after a call. */
    private static final class Lent implements AutoCloseable {
        private final List<Elements> all = new ArrayList<>();

        Elements one(long address) {
            Elements elements = Elements.tensorAt(address, 0);
            all.add(elements);
            return elements;
        }

        List<Elements> list(long address, long n) {
            List<Elements> list = new ArrayList<>();
            for (long i = 0; i < n; i++) {
                list.add(Elements.tensorAt(address, i));
            }
            all.addAll(list);
            return list;
        }

        @Override
        public void close() {
            all.forEach(Elements::end);
        }
    }

    @Override
    void reduceComponents(ReduceOp op, long components, long n, long out) throws Exception {
        try (Lent lent = new Lent()) {
            functions.reduce(op, lent.list(components, n), lent.one(out));
        }
    }

    @Override
    void broadcastCopies(long value, long copies, long n) throws Exception {
        try (Lent lent = new Lent()) {
            functions.broadcast(lent.one(value), lent.list(copies, n));
        }
    }

    @Override
    void gatherComponents(long components, long n, int axis, long out) throws Exception {
        try (Lent lent = new Lent()) {
            functions.gather(lent.list(components, n), axis, lent.one(out));
        }
    }
}
