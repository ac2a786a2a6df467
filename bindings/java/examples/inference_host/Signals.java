// SPDX-License-Identifier: Apache-2.0

package inference_host;

import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;

/**
 * Signals that end a program, in the order that it likes. The JVM's own way, shutdown hooks, runs all of them side by side:
 * one of ONNX Runtime's frees what its sessions compute with, while requests are still answered.
 */
final class Signals extends CompletableFuture<String> {
    private Signals() {}

    /**
     * Completed, from now on, by the first of these signals, which do nothing else any more. sun.misc.Signal is called by
     * its name: javac has a warning for it that cannot be turned off.
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
