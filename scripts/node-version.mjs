// Imported first, so an old Node says this sentence instead of failing on something newer.
// Keep it, and the import lists of its siblings, in syntax and names that Node 14 already knows.
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Handrail needs Node 20.19 or newer and this is ${process.versions.node}: install a newer Node and run the command again.`,
  )
  process.exit(1)
}
