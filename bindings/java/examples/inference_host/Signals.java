// SPDX-License-Identifier: Apache-2.0

package inference_host;

import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;

/**
 * Waits for signals so that the program can shut down in a defined order. JVM shutdown hooks all run
 * concurrently, and a hook of ONNX Runtime frees resources of its sessions while requests are still being
 * answered.
 */
final class Signals extends CompletableFuture<String> {
    private Signals() {}

    /**
     * Returns a future that the first of these signals completes. From now on the signals have no other
     * effect. sun.misc.Signal is accessed by reflection, because javac emits a warning for it that cannot be
     * suppressed.
     */
    static Signals await(String... names) {
        Signals first = new Signals();
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Object completes = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler},
                    (proxy, method, args) -> {
                        first.complete(String.valueOf(args[0]));
                        return null;
                    });
            for (String name : names) {
                signal.getMethod("handle", signal, handler)
                        .invoke(null, signal.getConstructor(String.class).newInstance(name), completes);
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this JVM has no module jdk.unsupported", e);
        }
        return first;
    }
}
