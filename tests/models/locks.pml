/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handing a lock on (kernel/service/lock*.c): N takers want it, ROUNDS times
 * each. Never do two have it; nobody waits for ever; and who has it after
 * somebody died with it has been told.
 *
 * What is modelled: the word and every swap of it; the home's owner and queue;
 * WAIT, RELEASE, GRANT and PROBE as messages that take their time, overtake each
 * other, and are delivered twice; swaps and GRANTs whose answers are lost; takers
 * that give up waiting, or taking; processes that die with the lock, and nodes
 * that do. A claim is (taker, round). What is not: sharing; LMRs that go; the
 * order of the queue (it is one); time.
 *
 * TROUBLES says how much goes wrong in a run. tests/models/run says which of
 * these changes of the protocol must be found to be wrong:
 *
 *   NO_REFUSE    a taker that has gone is not asked whether it still wants it
 *   NO_PROBE     a word is believed
 *   NO_RELEASE   who finds the word MANAGED when he gives it back leaves it so
 *   LATE_BACK    a lock counts as managed until its word has been handed back
 *   NO_SWEEP     the end of a node is not noticed
 *   NO_EARLY     who is in the word, and gives it back before the home has seen
 *                him there, is told that he did not have it
 *   NO_BOTH      likewise, if he is in the queue as well: it ends his place there,
 *                and nothing else
 *   NO_ASK       who was in the word, and refuses the lock, is not asked how he
 *                gives it back
 *   NO_DIED      a death that the next one did not hear of is not told to another
 *   NO_HAD       a GRANT that comes again is refused by who had it
 *   UNSURE_IS_NO a swap whose answer was lost counts as not done
 *
 * With PROBE_ANY not only who was found in the word is asked (PROBE), but any
 * owner; without that, it shows, nobody waits for ever who leaves the word alone.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TROUBLES
#define TROUBLES 2
#endif
#define TICKETS (N * ROUNDS)
#define NONE TICKETS       /* no ticket */

/* The word: FREE, MANAGED, DIED, or HELD by a ticket. */
#define FREE (TICKETS + 1)
#define MANAGED (TICKETS + 2)
#define DIED (TICKETS + 3)
/* HELD by the first taker, but not true: copied from somewhere else, say. */
#define STALE (TICKETS + 4)
#define held(w) ((w) < TICKETS || (w) == STALE)
#define taker_of(t) ((t) == STALE -> 0 : (t) / ROUNDS)

/* How a claim is given back. */
#define CLEAN 1
#define DEAD 2
#define UNUSED 3

mtype = { AWAY, TAKING, WAITING, HOLDING, ENDING, LEFT };

byte word = FREE;
byte troubles = TROUBLES;

/* At the takers, by ticket. */
mtype claim[TICKETS] = AWAY;
bool told[TICKETS];         /* that somebody died */
bool had[TICKETS];          /* it was granted */
byte end_of[TICKETS];       /* LEFT: how */
bool alive[N] = true;       /* its node */

/* On their way. */
bool wait_msg[TICKETS];
byte release_msg[TICKETS];
bool grant_msg[TICKETS];
bool refused_msg[TICKETS];

/* At the home. */
bool managed;
bool settling;
byte early[TICKETS];        /* given back meanwhile: how */
bool died;
bool probe;
byte owner = NONE;
bool found;                 /* in the word */
bool owner_told;            /* it was granted with the news of a death */
byte queue[TICKETS];
byte queued;
bool swept[N];

/* What is to be shown. */
byte inside;
bool broken;                /* somebody died with it, and nobody knows */
byte finished;

inline find(t, at)
{
	at = 0;
	do
	:: at < queued && queue[at] != t -> at++
	:: else -> break
	od
}

inline unqueue(at)
{
	queued--;
	do
	:: at < queued -> queue[at] = queue[at + 1]; at++
	:: else -> break
	od;
	queue[queued] = 0;
	at = 0
}

/* The owner's claim is over. how: CLEAN, DEAD, UNUSED */
inline disown(how)
{
#ifndef NO_DIED
	died = died || how == DEAD || (how == UNUSED && owner_told);
#else
	died = died || how == DEAD;
#endif
	owner = NONE;
	owner_told = false;
	found = false;
	probe = false
}

/* What is under way for one claim: each is done at any time, or later. */
proctype messages(byte t)
{
	byte at;

end:	do
	/* At the home: WAIT, */
	:: atomic {
		wait_msg[t] ->
		/* It may come once more. */
		if
		:: wait_msg[t] = false
		:: troubles > 0 -> troubles--
		fi;
		if
		/* A session with who counts as dead is no session. */
		:: swept[taker_of(t)] -> wait_msg[t] = false
		:: !swept[taker_of(t)] && owner == t -> grant_msg[t] = true
		:: else ->
			find(t, at);
			if
			:: at == queued -> queue[queued] = t; queued++
			:: else
			fi
		fi;
		at = 0
	}
	/* RELEASE, which is answered, */
	:: atomic {
		release_msg[t] ->
		if
		:: owner == t -> disown(release_msg[t])
		:: else ->
			find(t, at);
			if
			:: at < queued ->
				unqueue(at);
#ifndef NO_BOTH
				if
				:: settling -> early[t] = release_msg[t]
				:: else
				fi
#endif
#ifndef NO_EARLY
			/* It may be who is in the word. */
			:: at == queued && settling ->
				early[t] = release_msg[t]
			:: at == queued && !settling
#else
			:: else
#endif
			fi
		fi;
		release_msg[t] = 0;
		if
		:: claim[t] == ENDING || claim[t] == LEFT -> claim[t] = AWAY
		:: else
		fi;
		at = 0
	}
	/* and that a GRANT was refused. */
	:: atomic {
		refused_msg[t] ->
		refused_msg[t] = false;
		if
#ifndef NO_ASK
		:: owner == t && found -> probe = true
		:: owner == t && !found -> disown(UNUSED)
#else
		:: owner == t -> disown(UNUSED)
#endif
		:: else
		fi
	}
	/* At the taker: GRANT, */
	:: atomic {
		grant_msg[t] ->
		if
		:: grant_msg[t] = false
		/* Its answer is lost, so it is said again. */
		:: troubles > 0 -> troubles--
		fi;
		if
		:: !alive[taker_of(t)] -> grant_msg[t] = false
		:: alive[taker_of(t)] && claim[t] == WAITING ->
			claim[t] = HOLDING;
			had[t] = true;
			told[t] = told[t] || (owner == t && owner_told)
		:: alive[taker_of(t)] && claim[t] == HOLDING
#ifndef NO_HAD
		/* On its way back: how it ends is for RELEASE to say. */
		:: alive[taker_of(t)] && had[t] &&
		   (claim[t] == ENDING || claim[t] == LEFT)
#endif
		:: else ->
#ifndef NO_REFUSE
			refused_msg[t] = true
#endif
		fi
	}
	/* and what is given back in the background. */
	:: atomic {
		claim[t] == LEFT && !release_msg[t] && alive[taker_of(t)] ->
		if
		:: word == t ->
			word = (end_of[t] == DEAD -> DIED : FREE);
			claim[t] = AWAY
		:: else -> release_msg[t] = end_of[t]
		fi
	}
	od
}

/* Who is next. */
active proctype grants()
{
	byte at;

end:	do
	:: atomic {
		managed && owner == NONE && queued > 0 ->
		owner = queue[0];
		owner_told = died;
		died = false;
		grant_msg[owner] = true;
		at = 0;
		unqueue(at)
	}
	od
}

/* The home's work on the word: one thing at a time. */
active proctype work()
{
	byte was, at;

end:	do
	/* Settle: swap whatever there is for MANAGED. */
	:: atomic {
		!managed && queued > 0 ->
		was = word;
		word = MANAGED;
		settling = true
	};
	atomic {
		settling = false;
		managed = true;
		if
		:: was < TICKETS && early[was] ->
			died = died || early[was] == DEAD;
			was = FREE
		:: was >= TICKETS || !early[was]
		fi;
		at = 0;
		do
		:: at < TICKETS -> early[at] = 0; at++
		:: else -> break
		od;
		at = 0;
		if
		:: was == DIED -> died = true
		:: held(was) && swept[taker_of(was)] -> died = true
		:: held(was) && !swept[taker_of(was)] ->
			owner = was;
			found = true;
			find(was, at);
			if
			:: at < queued ->
				/* He did not know. */
				unqueue(at);
				grant_msg[was] = true
			:: else -> probe = true
			fi
		:: else
		fi;
		was = 0;
		at = 0
	}
#ifndef NO_PROBE
	:: atomic {
		probe && owner != NONE && alive[taker_of(owner)] ->
		if
		:: owner == STALE -> disown(UNUSED)
		:: owner != STALE && claim[owner] == AWAY -> disown(UNUSED)
		:: owner != STALE && claim[owner] == LEFT && !had[owner] ->
			disown(end_of[owner])
		/* Also of one that was granted: there will be a RELEASE. */
		:: else -> probe = false
		fi
	}
#endif
#ifdef PROBE_ANY
	/* As long as others wait any owner is asked. */
	:: atomic { managed && owner != NONE && queued > 0 && !probe -> probe = true }
#endif
	/* Hand back: it is not managed before it is swapped. */
#ifndef LATE_BACK
	:: atomic { managed && owner == NONE && queued == 0 -> managed = false };
	   atomic {
		if
		:: died -> word = DIED
		:: else -> word = FREE
		fi;
		died = false
	   }
#else
	:: atomic {
		managed && owner == NONE && queued == 0 ->
		if
		:: died -> word = DIED
		:: else -> word = FREE
		fi;
		died = false
	   };
	   managed = false
#endif
	od
}

#ifndef NO_SWEEP
/* The home counts a node as dead: later than it dies. */
proctype sweep(byte i)
{
	byte at;

end:	atomic {
		!alive[i] ->
		swept[i] = true;
		if
		:: owner != NONE && taker_of(owner) == i -> disown(DEAD)
		:: else
		fi;
		do
		:: at < queued && taker_of(queue[at]) == i -> unqueue(at)
		:: at < queued && taker_of(queue[at]) != i -> at++
		:: else -> break
		od
	}
}
#endif

inline die()
{
	/* The home hears of it later; nothing of it is sent any more. */
	alive[i] = false;
	claim[t] = AWAY;
	goto dead
}

proctype taker(byte i)
{
	byte round, t;
	bool unsure;

	do
	:: round == ROUNDS -> break
	:: else ->
		t = i * ROUNDS + round;
		unsure = false;
		claim[t] = TAKING;
again:		atomic {
			if
			:: word == FREE || word == DIED || word == t ->
				/* Nobody passes the queue of a managed lock. */
				assert(!managed);
				told[t] = (word == DIED) || (word == t && told[t]);
				word = t;
				if
				:: claim[t] = HOLDING
				:: troubles > 0 ->
					/* The answer is lost. */
					troubles--;
					unsure = true
				fi
			:: else ->
				/* Only the home can have replaced ours. */
				claim[t] = WAITING;
				wait_msg[t] = true
			fi
		}
		if
		:: claim[t] == TAKING && unsure ->
			if
#ifndef UNSURE_IS_NO
			:: goto again
			/* Out of reach: the caller is told so. */
			:: atomic {
				end_of[t] = (told[t] -> DEAD : UNUSED);
				claim[t] = LEFT
			   };
			   goto next
#else
			:: atomic { claim[t] = AWAY }; goto next
#endif
			fi
		:: else
		fi;
		if
		:: claim[t] == WAITING ->
			if
			:: claim[t] == HOLDING
			:: atomic {
				claim[t] == WAITING && troubles > 0 ->
				troubles--;
				end_of[t] = (told[t] -> DEAD : UNUSED);
				claim[t] = LEFT
			   };
			   goto next
			:: atomic {
				claim[t] == WAITING && troubles > 0 ->
				troubles--;
				die()
			   }
			fi
		:: else
		fi;
		/* It is ours. */
		atomic {
			assert(inside == 0);
			assert(!broken || told[t]);
			inside++;
			broken = false
		}
		if
		:: atomic { inside-- }
		:: atomic {
			troubles > 0 ->
			troubles--;
			inside--;
			broken = true;
			end_of[t] = DEAD;
			claim[t] = LEFT
		   };
		   goto next
		:: atomic {
			troubles > 0 ->
			troubles--;
			inside--;
			broken = true;
			die()
		   }
		fi;
		atomic {
			claim[t] = ENDING;
			if
			:: word == t -> word = FREE; claim[t] = AWAY
			:: else ->
#ifndef NO_RELEASE
				release_msg[t] = CLEAN
#else
				claim[t] = AWAY
#endif
			fi
		}
		claim[t] == AWAY;
next:		round++
	od;
dead:	atomic { finished++ }
}

init
{
	byte i;

	atomic {
		if
		:: true
		:: troubles > 0 -> troubles--; word = STALE
		fi;
		for (i : 0 .. TICKETS - 1) {
			run messages(i)
		}
		for (i : 0 .. N - 1) {
#ifndef NO_SWEEP
			run sweep(i);
#endif
			run taker(i)
		}
	}
	/* Nobody waits for ever. */
	finished == N
}
