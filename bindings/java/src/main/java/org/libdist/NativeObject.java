// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.util.function.LongFunction;
import java.util.function.LongToIntFunction;
import java.util.function.ObjLongConsumer;
import org.libdist.internal.Text;

/** What users hold of a native object. It ends by close(), or some time after nobody holds it any more. */
abstract class NativeObject implements AutoCloseable {
    final Native owner;
    private final Cleaner.Cleanable cleanable;

    NativeObject(Native owner) {
        this.owner = owner;
        cleanable = Native.CLEANER.register(this, owner::collect);
    }

    /** A part of another one: it ends with that. */
    NativeObject(NativeObject whole) {
        owner = whole.owner;
        cleanable = null;
    }

    /** The handle, for a call: {@link #release} follows. */
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

    /** What native code writes about it. */
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

    /** Ends it; what is closed already stays so. */
    @Override
    public void close() {
        if (cleanable != null) {
            owner.close();
            cleanable.clean(); // finds nothing left to do
        }
    }
}
