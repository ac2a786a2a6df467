// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.util.function.LongFunction;
import java.util.function.LongToIntFunction;
import java.util.function.ObjLongConsumer;
import org.libdist.internal.Text;

/**
 * The object through which programs use a native object. The native object is destroyed by close(), or some
 * time after this object has become unreachable.
 */
abstract class NativeObject implements AutoCloseable {
    final Native owner;
    private final Cleaner.Cleanable cleanable;

    NativeObject(Native owner) {
        this.owner = owner;
        cleanable = Native.CLEANER.register(this, owner::collect);
    }

    /** Creates a part of another object, which ends with that object. */
    NativeObject(NativeObject whole) {
        owner = whole.owner;
        cleanable = null;
    }

    /** Returns the handle for a call; {@link #release} must follow. */
    long acquire() {
        return owner.acquire();
    }

    void release() {
        owner.release();
    }

    final <T> T ask(LongFunction<T> question) {
        long handle = acquire();
        try {
            return question.apply(handle);
        } finally {
            release();
        }
    }

    final int askInt(LongToIntFunction question) {
        long handle = acquire();
        try {
            return question.applyAsInt(handle);
        } finally {
            release();
        }
    }

    /** Returns the text that native code writes about the object. */
    final String written(ObjLongConsumer<Text> write) {
        Text text = new Text();
        try {
            return ask(handle -> {
                write.accept(text, handle);
                return Texts.of(text.text());
            });
        } finally {
            text.delete();
        }
    }

    /** Closes the object. Does nothing if it is closed. */
    @Override
    public void close() {
        if (cleanable != null) {
            owner.close();
            cleanable.clean(); // finds nothing left to do
        }
    }
}
