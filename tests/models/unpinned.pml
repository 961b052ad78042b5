/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why no node reaches a page that the kernel takes away from a process while the page is (a part
 * of) an unpinned LMR: kernel/memory/unpinned/, and Documentation/memory-safety.rst, "Chunks of
 * unpinned LMRs". There are one page, its home and one mapper. The kernel takes the page away once,
 * and a fork shares it with a child once: each at any time, possibly both at the same time.
 *
 * Checked: no write of the mapper arrives in a page that is not the process's alone; and the kernel
 * is never held up for good (no invalid end state).
 *
 * At any time a packet may be late, even one of a mapper that has died; ENDS may overtake the
 * answer to LMR_CHUNK; the mapper may die, or stand still until the home has fenced it; the server
 * may look the page up before or after the kernel changes it.
 *
 * Not modelled: sessions that begin anew. They are as in revoke.pml, because for its mapper a chunk
 * is an LMR.
 *
 * Each of the macros below leaves out one step that the argument rests on. The model must then
 * fail; otherwise it shows nothing.
 */
#ifdef NO_SPOIL		/* a chunk enters the table although its page was changed meanwhile */
#define SPOIL false
#else
#define SPOIL true
#endif
#ifdef NO_QUIET		/* an invalidation counts as over when LITE returns from it */
#define QUIET false
#else
#define QUIET true
#endif
#ifdef NO_AWAIT		/* a second invalidation does not wait for the first one's mappers */
#define AWAIT false
#else
#define AWAIT true
#endif
#ifdef NO_DYING		/* a mapper is added to a chunk that is ending */
#define DYING false
#else
#define DYING true
#endif
#ifdef NO_COUNT		/* a mapper is answered before it is counted */
#define COUNT false
#else
#define COUNT true
#endif
#ifdef NO_TRY		/* an ENDS that overtakes the answer to LMR_CHUNK is lost */
#define TRY false
#else
#define TRY true
#endif
#ifdef NO_WAIT		/* the mapper answers ENDS with operations in flight */
#define WAIT false
#else
#define WAIT true
#endif
#ifdef NO_FENCE		/* the home does not fence a mapper that does not answer */
#define FENCE false
#else
#define FENCE true
#endif
#ifdef NO_ORDER		/* mappers of a dead session are dropped before it is fenced */
#define ORDER false
#else
#define ORDER true
#endif

#define FRAMES 4
#define CHUNKS 3	/* of the page, one after the other */
#define OPS 2

mtype = { FREE, OURS, SHARED };
mtype frame[FRAMES + 1] = FREE;
byte page;		/* the frame that the process has; 0: none */
byte given;		/* frames given to the process so far */
byte under_way;		/* invalidations that have begun and not ended */

/* At the home. */
bool upset;		/* an invalidation may not be over */
bool bringing, spoilt;
byte table;		/* the chunk that is in the table; 0: none */
byte made;		/* chunks made so far */
byte of_frame[CHUNKS + 1];
bool ending[CHUNKS + 1], dying[CHUNKS + 1], counted[CHUNKS + 1];
bool qp = true;		/* accepts packets of the mapper */

/* Messages. */
mtype = { NONE, ASKED, SERVED, BUSY, YES };
mtype request, reply;
byte replied;		/* the chunk that the reply names */
mtype ends[CHUNKS + 1] = NONE;
byte packet;		/* the frame that the write in flight goes to; 0: none */

/* At the mapper. */
bool dead;
byte have;		/* the chunk that it may use */
byte used;		/* the chunk that an operation has entered */
bool asking, overtaken, done;

/* The process touches its page, or a chunk needs it writable. */
inline touch()
{
	if
	:: page && frame[page] == OURS
	:: (!page || frame[page] == SHARED) && given < FRAMES ->
		/* A shared frame is left to the child. */
		given++;
		page = given;
		frame[page] = OURS
	:: (!page || frame[page] == SHARED) && given == FRAMES -> page = 0
	fi
}

/* The home serves LMR_CHUNK. */
active proctype server()
{
	byte c;
	byte f;

end:	do
	:: atomic { qp && request == ASKED -> request = SERVED };
again:	atomic { c = table; if :: c && ending[c] -> c = 0 :: else fi };
	if
	:: c ->
		if
		:: !COUNT -> atomic { replied = c; reply = YES }
		:: else
		fi;
		atomic {
			if
			:: DYING && dying[c] -> goto none
			:: else ->
				counted[c] = true;
				replied = c;
				reply = YES
			fi
		}
	:: !c && (table || made == CHUNKS) ->
none:		reply = BUSY
	:: else ->
		atomic {
			if
			:: QUIET && upset -> goto busy
			:: else -> bringing = true; spoilt = false
			fi
		};
		atomic { touch(); f = page };
		atomic {
			bringing = false;
			if
			:: (SPOIL && spoilt) || table || !f
			:: else ->
				made++;
				table = made;
				of_frame[made] = f
			fi
		};
		goto again;
busy:		reply = BUSY
	fi;
	c = 0;
	f = 0
	od
}

/* The kernel takes the page away, or shares it. */
proctype invalidation(bool fork)
{
	byte c;
	bool mine, told;

	atomic {
		under_way++;
		upset = true;
		spoilt = spoilt || bringing;
		c = table;
		mine = c && !ending[c];
		ending[c] = ending[c] || mine
	};
	if
	:: mine ->
		atomic {
			dying[c] = true;
			told = counted[c];
			if
			:: told -> ends[c] = ASKED
			:: else
			fi
		};
		if
		:: !told || !counted[c]
		:: ends[c] == YES
		/* The home waits no longer, or the session is over. */
		:: ends[c] != NONE -> qp = qp && !FENCE
		fi;
		table = 0
	:: !mine && c -> !AWAIT || table != c
	:: !c
	fi;
	atomic {
		if
		:: page && fork -> frame[page] = SHARED
		:: page && !fork -> frame[page] = FREE; page = 0
		:: else
		fi;
		under_way--
	}
}

init
{
	atomic {
		touch();
		run invalidation(false);
		run invalidation(true)
	}
}

/* lite_unpinned_quiet() */
active proctype quiet()
{
end:	do
	:: atomic { upset && !under_way -> upset = false }
	od
}

/* The mapper dies. The home notices later, fences the mapper, and then drops its MAPs. */
active proctype session()
{
	byte c;

end:	atomic { !dead -> dead = true };
	if
	:: ORDER -> qp = false
	:: else
	fi;
	c = 1;
	do
	:: c <= CHUNKS -> counted[c] = false; c++
	:: c > CHUNKS -> break
	od;
	qp = false
}

/* A write arrives. */
active proctype network()
{
end:	do
	:: atomic { packet ->
		if
		:: qp -> assert(frame[packet] == OURS)
		:: else
		fi;
		packet = 0;
		done = true
	   }
	od
}

active proctype mapper()
{
end:	do
	:: atomic { !dead && !have && !asking ->
		asking = true;
		overtaken = false;
		reply = NONE;
		request = ASKED
	   };
end_reply: atomic { !dead && reply != NONE ->
		if
		:: reply == YES && !(overtaken && TRY) -> have = replied
		:: else
		fi;
		reply = NONE;
		asking = false
	   }
	od
}

/* The mapper serves ENDS. */
active proctype ender()
{
	byte c;

end:	do
	:: atomic { !dead && (ends[1] == ASKED || ends[2] == ASKED || ends[3] == ASKED) ->
		if
		:: ends[1] == ASKED -> c = 1
		:: ends[2] == ASKED -> c = 2
		:: ends[3] == ASKED -> c = 3
		fi;
		ends[c] = SERVED;
		overtaken = overtaken || asking;
		if
		:: have == c -> have = 0
		:: else
		fi
	   };
end_wait:  atomic { !dead && (!WAIT || used != c) -> ends[c] = YES; c = 0 }
	od
}

active proctype operation()
{
	byte n;

end:	do
	:: n < OPS ->
		n++;
end_enter:	atomic { !dead && have -> used = have };
		/* A posted write stays in flight even if the mapper dies. */
end_post:	atomic { !dead && !packet -> packet = of_frame[used]; done = false };
end_done:	atomic { !dead && done -> used = 0; done = false }
	od
}
