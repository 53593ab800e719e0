<?php
// Uses Doctrine's DBAL and ORM: `doctrine_use.php SOCKET`. Prints what it found, as JSON.
require_once 'Doctrine/ORM/autoload.php';
require_once 'Symfony/Component/Cache/autoload.php';

use Doctrine\Common\Collections\ArrayCollection;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception as DatabaseException;
use Doctrine\DBAL\LockMode;
use Doctrine\DBAL\Schema\Schema;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

#[ORM\Entity]
class Author {
    #[ORM\Id, ORM\GeneratedValue, ORM\Column(type: 'integer')]
    public ?int $id = null;
    #[ORM\Column(type: 'string', length: 100, unique: true)]
    public string $name;
    #[ORM\OneToMany(targetEntity: Book::class, mappedBy: 'author', cascade: [ 'persist' ])]
    public $books;
    public function __construct( $name ) {
        $this->name = $name;
        $this->books = new ArrayCollection();
    }
}

#[ORM\Entity, ORM\Index(columns: [ 'published', 'title' ])]
class Book {
    #[ORM\Id, ORM\GeneratedValue, ORM\Column(type: 'integer')]
    public ?int $id = null;
    #[ORM\Column(type: 'string', length: 200)]
    public string $title;
    #[ORM\Column(type: 'date')]
    public $published;
    #[ORM\Column(type: 'json', nullable: true)]
    public $data;
    #[ORM\Version, ORM\Column(type: 'integer')]
    public int $version = 1;
    #[ORM\ManyToOne(targetEntity: Author::class, inversedBy: 'books'),
      ORM\JoinColumn(nullable: false, onDelete: 'CASCADE')]
    public $author;
    #[ORM\ManyToMany(targetEntity: Author::class)]
    public $readers;
    public function __construct() {
        $this->readers = new ArrayCollection();
    }
}

function failure( $work ) {
    try {
        $work();
    } catch ( DatabaseException $failure ) {
        return get_class( $failure ) . ' ' . $failure->getCode();
    }
    return '';
}

function constraints( $connection, $table ) {
    $found = array_map(
        fn( $key ) => [ $key->getName(), $key->getForeignTableName(), $key->onDelete() ],
        $connection->createSchemaManager()->listTableForeignKeys( $table ) );
    sort( $found );
    return $found;
}

$given = [ 'driver' => 'pdo_mysql', 'unix_socket' => $argv[1], 'user' => 'app', 'password' => 'app',
    'dbname' => 'app', 'charset' => 'utf8mb4' ];
$config = ORMSetup::createAttributeMetadataConfiguration( [ __DIR__ ], true );
$connection = DriverManager::getConnection( $given, $config );
$manager = new EntityManager( $connection, $config );
$tool = new SchemaTool( $manager );
$classes = array_map( fn( $name ) => $manager->getClassMetadata( $name ),
    [ Author::class, Book::class ] );
$tool->createSchema( $classes );
$found = [ 'constraints' => constraints( $connection, 'Book' ),
    'of readers' => constraints( $connection, 'book_author' ),
    'to be changed' => $tool->getUpdateSchemaSql( $classes ) ];

foreach ( range( 1, 40 ) as $number ) {
    $author = new Author( "Author $number" );
    foreach ( range( 1, 5 ) as $at ) {
        $book = new Book();
        $book->title = "Book $at of $number";
        $book->published = new DateTime( "2024-0$at-01" );
        $book->data = [ 'number' => $number ];
        $book->author = $author;
        $author->books->add( $book );
        $book->readers->add( $author );
    }
    $manager->persist( $author );
}
$manager->flush();
$manager->clear();
$query = $manager->createQuery( 'SELECT a.name, COUNT(b.id) c, MAX(b.published) m ' .
    'FROM Author a JOIN a.books b WHERE b.published > :day GROUP BY a.id ORDER BY a.name' );
$found['query'] = $query->setParameter( 'day', '2024-02-15' )->getArrayResult();
$manager->wrapInTransaction( function ( $manager ) use ( &$found ) {
    $book = $manager->find( Book::class, 7, LockMode::PESSIMISTIC_WRITE );
    $book->title = 'Changed';
    $manager->flush();
    $found['version'] = $book->version;
} );
$found['twice'] = failure( fn() => $connection->insert( 'Author', [ 'name' => 'Author 3' ] ) );
$found['no parent'] = failure( fn() => $connection->executeStatement(
    'UPDATE Book SET author_id = 999 WHERE id = 1' ) );
$connection->executeStatement( 'ALTER TABLE Book DROP FOREIGN KEY ' . $found['constraints'][0][0] );
$connection->executeStatement( 'ALTER TABLE Book ADD CONSTRAINT kept FOREIGN KEY (author_id) ' .
    'REFERENCES Author (id)' );
$found['to be changed back'] = count( $tool->getUpdateSchemaSql( $classes ) );
$found['children'] = failure( fn() => $connection->executeStatement(
    'DELETE FROM Author WHERE id = 5' ) );
$connection->executeStatement( 'DELETE FROM book_author WHERE book_id > 100' );
$connection->beginTransaction();
$connection->executeStatement( 'DELETE FROM Book WHERE id > 150' );
$connection->rollBack();
$found['books'] = $connection->fetchOne( 'SELECT COUNT(*) FROM Book' );

// The option `engine`: DBAL makes constraints for "InnoDB" only.
foreach ( [ 'none' => null, 'InnoDB' => 'InnoDB', 'CHEETAH' => 'CHEETAH' ] as $name => $engine ) {
    $schema = new Schema();
    foreach ( [ "parent_$name", "child_$name" ] as $table ) {
        $made = $schema->createTable( $table );
        $made->addColumn( 'id', 'integer' );
        $made->setPrimaryKey( [ 'id' ] );
        if ( $engine !== null ) {
            $made->addOption( 'engine', $engine );
        }
    }
    $made->addForeignKeyConstraint( "parent_$name", [ 'id' ], [ 'id' ] );
    foreach ( $schema->toSql( $connection->getDatabasePlatform() ) as $statement ) {
        $connection->executeStatement( $statement );
    }
    $found["engine $name"] = count( constraints( $connection, "child_$name" ) );
}
echo json_encode( $found ), "\n";
