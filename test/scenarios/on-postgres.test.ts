/** The stories that lean on the store the most, told once more on Postgres. */
import './cancel.test.ts'
import './concurrency.test.ts'
import './edit.test.ts'
import './errors.test.ts'
import './flows.test.ts'
import './governor.test.ts'
import './handover.test.ts'
import './remember.test.ts'
import './timeouts.test.ts'

process.env.HANDRAIL_TEST_STORE = 'postgres'
