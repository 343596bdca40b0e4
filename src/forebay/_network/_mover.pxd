# A thread of the system that knows no Python: it calls a function twice a millisecond while it is asked to, for a
# thread that waits for the GIL.  It takes no signals, and is not there after a fork.  Twin: _mover.py.

from forebay._network._io cimport BankPointer


cdef extern from *:
    """
    #include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <time.h>
    #include <unistd.h>

    typedef struct {
        pthread_t thread;
        pthread_mutex_t lock;       /* of asked and ended */
        pthread_cond_t changed;
        int asked, ended;
        pid_t process;
        int (*move)(void *of);      /* whether it is to be called again */
        void *of;
    } forebay_mover;

    static inline void *forebay_mover_run(void *given)
    {
        forebay_mover *mover = (forebay_mover *)given;
        struct timespec pause = {0, 500000};
        pthread_mutex_lock(&mover->lock);
        while (!mover->ended) {
            if (!mover->asked) {
                pthread_cond_wait(&mover->changed, &mover->lock);
                continue;
            }
            mover->asked = 0;
            pthread_mutex_unlock(&mover->lock);
            do
                nanosleep(&pause, NULL);
            while (!__atomic_load_n(&mover->ended, __ATOMIC_RELAXED) && mover->move(mover->of));
            pthread_mutex_lock(&mover->lock);
        }
        pthread_mutex_unlock(&mover->lock);
        return NULL;
    }

    /* NULL: the system has no thread to give. */
    static inline forebay_mover *forebay_new_mover(int (*move)(void *of), void *of)
    {
        sigset_t all, before;
        int failed;
        forebay_mover *mover = (forebay_mover *)calloc(1, sizeof *mover);
        if (mover == NULL)
            return NULL;
        mover->move = move;
        mover->of = of;
        mover->process = getpid();
        pthread_mutex_init(&mover->lock, NULL);
        pthread_cond_init(&mover->changed, NULL);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failed = pthread_create(&mover->thread, NULL, forebay_mover_run, mover);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (failed) {
            free(mover);
            return NULL;
        }
        return mover;
    }

    static inline void forebay_ask_mover(forebay_mover *mover)
    {
        if (mover == NULL)
            return;
        pthread_mutex_lock(&mover->lock);
        mover->asked = 1;
        pthread_cond_signal(&mover->changed);
        pthread_mutex_unlock(&mover->lock);
    }

    static inline void forebay_end_mover(forebay_mover *mover)
    {
        /* In a forked child there is no such thread, and the lock is as the fork found it. */
        if (mover == NULL || mover->process != getpid())
            return;
        pthread_mutex_lock(&mover->lock);
        __atomic_store_n(&mover->ended, 1, __ATOMIC_RELAXED);
        pthread_cond_signal(&mover->changed);
        pthread_mutex_unlock(&mover->lock);
        pthread_join(mover->thread, NULL);
        pthread_cond_destroy(&mover->changed);
        pthread_mutex_destroy(&mover->lock);
        free(mover);
    }
    """
    ctypedef struct Mover "forebay_mover":
        pass
    Mover* forebay_new_mover(int (*move)(void*) noexcept nogil, void* of) noexcept nogil
    void ask_mover "forebay_ask_mover" (Mover* mover) noexcept nogil
    void end_mover "forebay_end_mover" (Mover* mover) noexcept nogil


ctypedef Mover* MoverPointer


cdef inline MoverPointer new_mover(int (*move)(BankPointer) noexcept nogil, BankPointer bank) noexcept nogil:
    return forebay_new_mover(<int (*)(void*) noexcept nogil>move, bank)


cdef inline MoverPointer no_mover() noexcept nogil:
    return NULL
